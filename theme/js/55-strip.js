// The strip of a narrow screen: the point in words, and a button that opens the controls below it.
(() => {
  "use strict";
  const top = document.querySelector("[data-top]");
  if (!top || !window.lesson) return;
  const { axes, shardAxes, nouns, defaults } = lesson.data;
  const parts = document.querySelectorAll("[data-part]"); // the strip has them, and the bench on paper
  const toggle = top.querySelector("[data-toggle]");
  const at = (name, point, kind) => axes[name][kind][axes[name].values.indexOf(point[name])];
  const rest = shardAxes.filter((axis) => axis !== "gpu");

  const isOpen = () => top.hasAttribute("data-open");
  const open = (on) => {
    top.toggleAttribute("data-open", on);
    toggle.setAttribute("aria-expanded", String(on));
    toggle.textContent = on ? "Close" : "Controls";
  };
  toggle.addEventListener("click", () => open(!isOpen()));
  top.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !isOpen()) return;
    open(false);
    toggle.focus();
  });

  // Open, it would hide where Tab or a link to a heading leads. A press elsewhere leaves it: the page would move below it.
  document.addEventListener("focusin", ({ target }) => {
    if (!isOpen() || top.contains(target) || !target.matches(":focus-visible")) return;
    open(false);
    target.scrollIntoView({ block: "nearest" });
  });
  const leaveFor = (fragment) => {
    const heading = isOpen() && !fragment.includes("=") && document.getElementById(fragment.slice(1));
    if (!heading || top.contains(heading)) return null;
    open(false);
    return heading;
  };
  document.addEventListener("click", ({ target }) => leaveFor(target.closest?.('a[href^="#"]')?.hash ?? "#"));
  addEventListener("hashchange", () => leaveFor(location.hash)?.scrollIntoView());

  lesson.onPoint((point, change) => {
    const words = {
      phase: point.phase,
      tokens: axes.tokens.spoken.prefill[axes.tokens.values.indexOf(point.tokens)],
      context: `${at("context", point, "brief")} context`,
      gpu: at("gpu", point, "texts"),
      // what isn't as the lesson starts is worth its room
      rest: rest.filter((name) => point[name] !== defaults[name])
        .map((name) => `, ${[at(name, point, "texts"), nouns[name]].filter(Boolean).join(" ")}`).join(""),
    };
    for (const part of parts) {
      const name = part.dataset.part;
      lesson.write(part, words[name]);
      const moved = name === "rest" ? rest.some((axis) => change.moved.includes(axis)) : change.moved.includes(name);
      part.toggleAttribute("data-moved", moved && change.by === "link");
    }
  });
})();
