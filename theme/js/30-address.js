// The address holds the point: #phase=decode&tokens=64&… with all seven keys. Missing keys read as the defaults, bad
// ones go to the nearest position and are said. A fragment without "=" is a heading: it moves the page, not the bench.
(() => {
  "use strict";
  if (!window.lesson) return;
  const { axes, defaults } = lesson.data;
  const PAUSE = 250; // browsers throttle replaceState
  let timer = 0;
  let last = 0;

  const isPoint = (fragment) => fragment.includes("=");

  lesson.fragment = (point) => `#${lesson.names.map((name) => `${name}=${point[name]}`).join("&")}`;

  const nearest = (values, number) => values.reduce((best, value) => (
    Math.abs(Math.log((value + 1) / (number + 1))) < Math.abs(Math.log((best + 1) / (number + 1))) ? value : best));

  // fragment → [point, what had to be changed]
  lesson.parse = (fragment) => {
    const given = new URLSearchParams(fragment.replace(/^#/, ""));
    const strange = [...given.keys()].find((name) => !lesson.names.includes(name));
    const notes = strange === undefined ? [] : [`The address has a part that the bench does not know: ${strange.slice(0, 40)}.`];
    const point = {};
    for (const name of lesson.names) {
      const { values, texts } = axes[name];
      const text = given.get(name);
      point[name] = defaults[name];
      if (text === null) continue;
      const exact = values.find((value) => String(value) === text);
      if (exact !== undefined) {
        point[name] = exact;
      } else if (typeof values[0] === "number" && /^\d{1,9}$/.test(text)) {
        point[name] = nearest(values, Number(text));
        notes.push(`The bench has no position at ${text} for ${name}: it went to ${texts[values.indexOf(point[name])]}.`);
      } else {
        notes.push(`The address has an unknown ${name}: the bench took ${texts[values.indexOf(point[name])]}.`);
      }
    }
    return [point, notes];
  };

  const write = () => {
    if (!timer) return;
    timer = 0;
    last = performance.now();
    if (!location.hash && lesson.isDefault(lesson.point)) return; // as the lesson starts: nothing to say
    history.replaceState({ point: lesson.point }, "", lesson.fragment(lesson.point));
  };

  // to write takes the browser a while: what the reader waits for is painted first
  const whenIdle = () => (window.requestIdleCallback ? requestIdleCallback(write, { timeout: PAUSE }) : write());

  const read = () => {
    if (isPoint(location.hash)) {
      const [point, notes] = lesson.parse(location.hash);
      return lesson.set(point, "address", notes);
    }
    const kept = history.state?.point;
    if (kept && location.hash) return lesson.set(kept, "address");
    if (!location.hash) return lesson.set(defaults, "address");
    history.replaceState({ point: lesson.point }, ""); // a heading: remember what stands behind it
    return undefined;
  };

  lesson.onPoint((point, { by }) => {
    if (by === "address" && lesson.fragment(point) === location.hash) return;
    if (by === "address" && !isPoint(location.hash)) return;
    if (by === "link" || by === "reset" || by === "back") {
      clearTimeout(timer);
      timer = 0;
      if (location.hash !== lesson.fragment(point)) history.pushState({ point }, "", lesson.fragment(point));
      return;
    }
    if (!timer) timer = setTimeout(whenIdle, Math.max(0, PAUSE - (performance.now() - last)));
  });

  addEventListener("hashchange", read);
  addEventListener("popstate", (event) => { if (!isPoint(location.hash) && event.state) read(); });
  addEventListener("pagehide", () => { clearTimeout(timer); write(); });
  lesson.start = read;
})();
