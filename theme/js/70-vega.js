// One drawing of the build becomes a live one: Vega draws aside what its spec says of the rows at hand, and takes its
// place. The chart's logic is in its spec; here rows are replaced and parameters set, nothing is computed.
(() => {
  "use strict";
  if (!window.lesson) return;
  const records = {}; // figure name → {spec, sizes}, handed over by the spec scripts
  const loads = {}; // address → promise of its script
  const held = new WeakMap(); // view → {dataset: the rows that it shows}
  const copies = (rows) => rows.map((row) => ({ ...row })); // Vega marks the rows that it is given

  // what makes one set of rows of another: where each row stays, its fields are changed, and its mark moves
  const changes = (shown, before, after) => {
    const change = window.lessonVega.changeset();
    if (!after.length || before.length !== after.length) return change.remove(() => true).insert(copies(after));
    for (const [index, row] of after.entries()) {
      for (const [field, value] of Object.entries(row)) {
        if (before[index][field] !== value) change.modify(shown[index], field, value);
      }
    }
    return change;
  };

  let queue = Promise.resolve();
  let shown = new WeakMap(); // the element of one size → whether this window shows it; to ask anew costs a layout
  addEventListener("resize", () => { shown = new WeakMap(); });

  lesson.spec = (name, record) => { records[name] = record; };

  lesson.vega = {
    has: (name) => name in records,
    asked: (address) => address in loads,

    shows(box) {
      if (!shown.has(box)) shown.set(box, box.getClientRects().length > 0);
      return shown.get(box);
    },

    // what takes long is done one at a time, with room between for what the reader does
    inTurn(work) {
      const done = queue.then(() => new Promise((resolve) => { setTimeout(resolve); })).then(work);
      queue = done.catch(() => {});
      return done;
    },

    load: (address) => (loads[address] ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.onload = resolve;
      script.onerror = () => {
        delete loads[address]; // the next reach for the bench tries anew
        reject(new Error(address));
      };
      script.src = address;
      document.head.append(script);
    })),

    // box: the element of one size; rows: what lesson.chartRows says. Returns the view.
    async build(box, name, rows) {
      const { spec, sizes } = records[name];
      const { parse, View, expressionInterpreter } = window.lessonVega;
      const signals = { ...rows.signals, size: box.dataset.variant };
      const runtime = parse({
        ...spec,
        ...sizes[box.dataset.variant],
        data: spec.data.map((data) => data.name in rows.data ? { ...data, values: copies(rows.data[data.name]) } : data),
        signals: spec.signals.map((s) => s.name in signals ? { ...s, value: signals[s.name] } : s),
      }, null, { ast: true });
      const aside = document.createElement("div");
      const view = new View(runtime, { expr: lesson.evaluator(expressionInterpreter), renderer: "svg" });
      // what pointing at a mark says; the ledger and the text say it too
      view.tooltip((_, __, ___, text) => { box.title = text ?? ""; });
      view.initialize(aside);
      await view.runAsync();
      const drawn = box.querySelector("svg"), live = aside.querySelector("svg");
      for (const key of ["role", "aria-label", "font-family"]) live.setAttribute(key, drawn.getAttribute(key));
      drawn.replaceWith(live); // drawn aside and swapped, so there is never a blank moment
      held.set(view, { ...rows.data });
      return view;
    },

    change(view, rows) {
      const before = held.get(view);
      for (const [name, values] of Object.entries(rows.data)) {
        if (values === before[name]) continue; // the same rows as before: nothing of them is drawn anew
        view.change(name, changes(view.data(name), before[name], values));
        before[name] = values;
      }
      for (const [name, value] of Object.entries(rows.signals)) view.signal(name, value);
      return view.runAsync();
    },
  };
})();
