// Figures come alive: Vega takes the drawings of the build over when the reader reaches for the bench, one by one and
// only those in sight. The chart's logic is in its spec; here rows are replaced and parameters set, nothing computed.
(() => {
  "use strict";
  const figures = [...document.querySelectorAll("figure[data-figure][data-spec]")];
  if (!figures.length || typeof lesson === "undefined") return;

  const records = {}; // figure name → {spec, sizes}, handed over by the spec scripts
  lesson.spec = (name, record) => { records[name] = record; };

  const views = new WeakMap(); // [data-variant] element → its Vega view, or null when it stays as it was drawn
  let state = "asleep"; // → "loading" → "awake", or "failed": then the drawings stay
  let frame = 0;

  const load = (address) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.onload = resolve;
    script.onerror = () => reject(new Error(address));
    script.src = address;
    document.head.append(script);
  });

  const copies = (rows) => rows.map((row) => ({ ...row })); // Vega marks the rows that it is given

  const build = async (box, name, rows) => {
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
    const view = new View(runtime, { expr: expressionInterpreter, renderer: "svg" }).initialize(aside);
    await view.runAsync();
    const drawn = box.querySelector("svg"), live = aside.querySelector("svg");
    for (const key of ["role", "aria-label", "font-family"]) live.setAttribute(key, drawn.getAttribute(key));
    drawn.replaceWith(live); // drawn aside and swapped, so there is never a blank moment
    return view;
  };

  const change = (view, rows) => {
    for (const [name, values] of Object.entries(rows.data)) {
      view.change(name, window.lessonVega.changeset().remove(() => true).insert(copies(values)));
    }
    for (const [name, value] of Object.entries(rows.signals)) view.signal(name, value);
    return view.runAsync();
  };

  const refresh = async (box, name) => {
    if (views.get(box) === null || !box.getClientRects().length || !lesson.chartRows(name)) return;
    try {
      if (!views.has(box)) views.set(box, build(box, name, lesson.chartRows(name)));
      else await change(await views.get(box), lesson.chartRows(name));
      await views.get(box);
    } catch {
      views.set(box, null);
    }
  };

  // at most once a frame, however fast the slider moves
  const update = () => {
    if (state !== "awake" || frame) return;
    frame = requestAnimationFrame(() => {
      frame = 0;
      for (const figure of figures) {
        if (!(figure.dataset.figure in records)) continue;
        for (const box of figure.querySelectorAll("[data-variant]")) refresh(box, figure.dataset.figure);
      }
    });
  };

  const wake = async () => {
    if (state !== "asleep") return;
    state = "loading";
    try {
      const addresses = figures.flatMap((figure) => [figure.dataset.runtime, figure.dataset.spec]);
      await Promise.all([...new Set(addresses)].map(load));
      state = "awake";
      update();
    } catch {
      state = "failed";
    }
  };

  const bench = document.querySelector("[data-bench]");
  for (const intent of ["pointerover", "pointerdown", "keydown", "focusin"]) {
    bench?.addEventListener(intent, wake, { once: true, passive: true });
  }
  addEventListener("resize", update); // another drawing may have come into sight
  lesson.on(() => { wake(); update(); });
})();
