// What a screen reader hears: once, politely, when the bench has come to rest.
(() => {
  "use strict";
  const status = document.querySelector("[data-announce]");
  if (!status || !window.lesson) return;
  const REST = 600;
  const { axes } = lesson.data;
  let timer = 0;
  let notes = []; // [what is to be said, the axes that it is about]

  const say = (extra) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (!lesson.ready(lesson.point)) return; // moved on: it is said once those numbers are there
      status.textContent = [...notes.map(([note]) => note), ...extra()].filter(Boolean).join(" ");
      notes = [];
    }, REST);
  };

  lesson.onPoint((point, change) => {
    const about = [...change.moved, ...(change.held ?? [])];
    // a note on what has moved on since is not true any more
    notes = notes.filter(([note, axes]) => !change.notes.includes(note) && !axes.some((axis) => about.includes(axis)));
    notes.push(...change.notes.map((note) => [note, about]));
    if (change.by === "failure") say(() => []);
  });

  lesson.on((point, { by, moved, notes: said }) => {
    if (by === "address" && !moved.length && !said.length) return;
    const set = by !== "link" ? [] : moved.map((name) => {
      const index = axes[name].values.indexOf(point[name]);
      return axes[name].spoken ? axes[name].spoken[point.phase][index] : axes[name].texts[index];
    });
    say(() => [
      set.length ? `Bench set to ${set.join(", ")}.` : "",
      `${lesson.text("throughput")} tokens per second.`,
      lesson.text("verdict"),
      lesson.text("warning"),
    ]);
  });
})();
