// What a screen reader hears: once, politely, when the bench has come to rest.
(() => {
  "use strict";
  const status = document.querySelector("[data-announce]");
  if (!status || !window.lesson) return;
  const REST = 600;
  const { axes } = lesson.data;
  let timer = 0;
  let notes = [];

  const say = (extra) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (!lesson.ready(lesson.point)) return; // moved on: it is said once those numbers are there
      status.textContent = [...notes, ...extra()].filter(Boolean).join(" ");
      notes = [];
    }, REST);
  };

  lesson.onPoint((point, change) => {
    notes.push(...change.notes.filter((note) => !notes.includes(note)));
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
