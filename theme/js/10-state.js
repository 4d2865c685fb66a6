// The point on the bench, and who hears when it moves. Two kinds of listeners: those of `onPoint` hear at once (controls,
// address), those of `on` hear when the numbers of the new point are there (readouts, ledger, figures).
(() => {
  "use strict";
  const holder = document.getElementById("bench-data");
  if (!holder) return;
  const data = JSON.parse(holder.textContent);
  const atOnce = [];
  const withNumbers = [];
  let point = data.defaults;
  let shown = point; // the last point whose numbers are on the page
  let turn = 0;

  // why the bench can't go to a value of an axis while its other choices stand; undefined where it can
  const refusal = (axis, value, at) => data.refusals.find((each) => (
    each.axis === axis && each.value === value && Object.entries(each.at).every(([name, of]) => at[name] === of)));

  // a place on the axes → [the nearest point, what had to be moved]
  const settle = (place) => {
    const next = { ...place };
    const notes = [];
    const move = (axis, to, why) => {
      next[axis] = to;
      const text = data.axes[axis].texts[data.axes[axis].values.indexOf(to)];
      notes.push(`${axis[0].toUpperCase()}${axis.slice(1)} moved to ${text}: ${why}.`);
    };
    if (next.phase === "decode" && next.context === 0) {
      move("context", data.axes.context.values.find((context) => context > 0), "decode reads its own cache");
    }
    for (const axis of lesson.names) {
      const refused = refusal(axis, next[axis], next);
      if (refused) move(axis, refused.instead, refused.reason);
    }
    return [next, notes];
  };

  const tell = (listeners, change) => {
    for (const listener of listeners) listener(point, change);
  };

  window.lesson = {
    data,
    names: Object.keys(data.axes),
    get point() { return point; },
    refusal,
    settled: (place) => settle(place)[0],
    onPoint(listener) { atOnce.push(listener); },
    on(listener) { withNumbers.push(listener); },

    // by: "control", "link", "reset", "address"; notes: what to say beside what is seen
    async set(changes, by, notes = []) {
      const mine = ++turn;
      const before = point;
      const asked = { ...point, ...changes };
      const [next, moves] = settle(asked);
      point = next;
      const moved = lesson.names.filter((name) => next[name] !== before[name]);
      const held = lesson.names.filter((name) => next[name] !== asked[name]); // where it could not go as asked
      const change = { before, moved, held, by, notes: [...notes, ...moves] };
      tell(atOnce, change);
      if (!lesson.ready(next)) {
        try {
          await lesson.load(next);
        } catch {
          if (mine !== turn) return;
          point = shown;
          tell(atOnce, { before: next, moved, by: "failure", notes: ["The numbers for this choice could not be loaded."] });
          return;
        }
        if (mine !== turn) return;
      }
      shown = point;
      tell(withNumbers, change);
    },
  };
})();
