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

  // decode always reads its own cache entry: there is no decode without context
  const settle = (next) => {
    if (next.phase !== "decode" || next.context > 0) return [next, ""];
    const least = data.axes.context.values.findIndex((context) => context > 0);
    const context = data.axes.context.values[least];
    const text = data.axes.context.texts[least];
    return [{ ...next, context }, `Context moved to ${text}: decode reads its own cache.`];
  };

  const tell = (listeners, change) => {
    for (const listener of listeners) listener(point, change);
  };

  window.lesson = {
    data,
    names: Object.keys(data.axes),
    get point() { return point; },
    onPoint(listener) { atOnce.push(listener); },
    on(listener) { withNumbers.push(listener); },

    // by: "control", "link", "reset", "address"; notes: what to say beside what is seen
    async set(changes, by, notes = []) {
      const mine = ++turn;
      const before = point;
      const [next, note] = settle({ ...point, ...changes });
      point = next;
      const moved = lesson.names.filter((name) => next[name] !== before[name]);
      const change = { before, moved, by, notes: note ? [...notes, note] : notes };
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
