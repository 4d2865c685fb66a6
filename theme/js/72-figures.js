// Figures come alive: Vega takes the drawings of the build over when the reader reaches for the bench, one by one and
// only those in sight. One that scrolls into view is brought up to date then.
(() => {
  "use strict";
  const figures = [...document.querySelectorAll("figure[data-figure][data-spec]")];
  if (!figures.length || !window.lesson) return;
  const bench = document.querySelector("[data-bench]");
  const boxes = new Map(figures.map((figure) => [figure, [...figure.querySelectorAll("[data-variant]")]]));
  const inSight = new Set();
  const views = new WeakMap(); // [data-variant] element → its Vega view; null: it stays as it was drawn
  const drawnAt = new WeakMap(); // the same → the turn of the bench that it shows
  const busy = new WeakSet();
  let state = "asleep"; // then "loading", then "awake", or "failed" until the bench moves
  let turn = 0; // counts the moves of the bench
  let [frame, drawn] = [0, -1]; // a frame is awaited in which what comes meanwhile is drawn; when something last was

  const bring = async (box, name, rows, printing) => {
    drawnAt.set(box, turn);
    if (views.has(box)) return lesson.vega.change(views.get(box), rows);
    const build = () => lesson.vega.build(box, name, rows);
    return views.set(box, await (printing ? build() : lesson.vega.inTurn(build)));
  };

  const refresh = async (box, name, printing) => {
    if (busy.has(box) || views.get(box) === null) return;
    busy.add(box);
    try {
      let rows = null;
      while (drawnAt.get(box) !== turn && (rows = lesson.chartRows(name))) await bring(box, name, rows, printing);
      if (rows?.label) lesson.mark(box.querySelector("svg"), "aria-label", rows.label);
    } catch {
      views.set(box, null);
    }
    busy.delete(box);
  };

  const refreshAll = (printing) => {
    if (state !== "awake") return;
    for (const figure of printing ? figures : inSight) {
      const { figure: name, spec } = figure.dataset;
      if (!lesson.vega.has(name)) {
        if (!lesson.vega.asked(spec)) lesson.vega.load(spec).then(update, () => {});
        continue;
      }
      for (const box of boxes.get(figure)) {
        if (printing || lesson.vega.shows(box)) refresh(box, name, printing);
      }
    }
  };
  const draw = () => { frame = 0; refreshAll(false); };
  // at once, so that the time before the next frame is used, and at most once a frame, by whose time it goes
  const update = () => {
    const time = document.timeline.currentTime;
    if (time === drawn) frame ||= requestAnimationFrame(draw);
    else if (!frame) draw();
    drawn = time;
  };

  // the bench's own picture comes in any case: paper gets it from wherever one reads
  const needed = () => {
    const first = figures.filter((figure) => figure.closest("[data-bench]") || inSight.has(figure));
    return [...new Set([figures[0].dataset.runtime, ...first.map((figure) => figure.dataset.spec)])];
  };

  const wake = async () => {
    if (state !== "asleep") return;
    state = "loading";
    await Promise.allSettled(needed().map(lesson.vega.load));
    state = window.lessonVega ? "awake" : "failed"; // the drawings stay
    update();
  };

  const prefetch = () => {
    // Firefox asks default-src whether a prefetch may be, and our policy has none
    const refused = navigator.connection?.saveData || CSS.supports("-moz-appearance", "none");
    for (const href of state !== "asleep" || refused ? [] : needed()) {
      document.head.append(Object.assign(document.createElement("link"), { rel: "prefetch", as: "script", href }));
    }
  };

  const observer = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) inSight[isIntersecting ? "add" : "delete"](target);
    update();
  }, { rootMargin: "25%" });
  for (const figure of figures) observer.observe(figure);
  const intents = ["pointerover", "pointerdown", "keydown", "focusin"]; // on either part, wherever it stands
  for (const part of bench?.children ?? []) intents.forEach((intent) => part.addEventListener(intent, wake));
  addEventListener("load", () => (window.requestIdleCallback ?? setTimeout)(prefetch));
  addEventListener("resize", update); // another drawing may have come into sight
  addEventListener("beforeprint", () => refreshAll(true)); // paper has its own choice of drawings
  lesson.onPoint((_, { by }) => { if (by === "failure") update(); });
  lesson.on((point) => {
    turn += 1;
    if (state === "failed") state = "asleep"; // try anew
    if (state !== "asleep" || !lesson.isDefault(point)) { wake(); update(); } // the build drew the default point
  });
})();
