// Figures come alive: Vega takes the drawings of the build over when the reader reaches for the bench, one by one and
// only those in sight. The chart's logic is in its spec; here rows are replaced and parameters set, nothing computed.
(() => {
  "use strict";
  const figures = [...document.querySelectorAll("figure[data-figure][data-spec]")];
  if (!figures.length || typeof lesson === "undefined") return;

  const addresses = [...new Set(figures.flatMap((figure) => [figure.dataset.runtime, figure.dataset.spec]))];
  const records = {}; // figure name → {spec, sizes}, handed over by the spec scripts
  lesson.spec = (name, record) => { records[name] = record; };

  const views = new WeakMap(); // [data-variant] element → promise of its Vega view; null: it stays as it was drawn
  let state = "asleep"; // then "loading", then "awake" or "failed"
  let frame = 0;

  const load = (address) => new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.onload = resolve;
    script.onerror = reject;
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
    try {
      if (!views.has(box)) views.set(box, build(box, name, lesson.chartRows(name)));
      else await change(await views.get(box), lesson.chartRows(name));
      await views.get(box);
      const { label } = lesson.chartRows(name);
      if (label) box.querySelector("svg").setAttribute("aria-label", label);
    } catch {
      views.set(box, null);
    }
  };

  const refreshAll = (printing) => {
    frame = 0;
    for (const figure of state === "awake" ? figures : []) {
      const name = figure.dataset.figure;
      if (!(name in records) || !lesson.chartRows(name)) continue;
      for (const box of figure.querySelectorAll("[data-variant]")) {
        if ((printing || box.getClientRects().length) && views.get(box) !== null) refresh(box, name);
      }
    }
  };
  const update = () => { frame ||= requestAnimationFrame(() => refreshAll(false)); }; // at most once a frame

  const wake = async () => {
    if (state !== "asleep") return;
    state = "loading";
    await Promise.allSettled(addresses.map(load));
    state = window.lessonVega ? "awake" : "failed"; // failed: the drawings stay
    update();
  };

  const prefetch = () => {
    for (const href of state !== "asleep" || navigator.connection?.saveData ? [] : addresses) {
      document.head.append(Object.assign(document.createElement("link"), { rel: "prefetch", as: "script", href }));
    }
  };

  const bench = document.querySelector("[data-bench]");
  for (const intent of ["pointerover", "pointerdown", "keydown", "focusin"]) bench?.addEventListener(intent, wake);
  addEventListener("load", () => (window.requestIdleCallback ?? setTimeout)(prefetch));
  addEventListener("resize", update); // another drawing may have come into sight
  addEventListener("beforeprint", () => refreshAll(true)); // paper has its own choice of drawings
  lesson.on((point) => {
    if (state !== "asleep" || !lesson.isDefault(point)) { wake(); update(); } // the build drew the default point
  });
})();
