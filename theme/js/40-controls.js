// The seven native inputs follow the point, and move it.
(() => {
  "use strict";
  const box = document.querySelector("[data-controls]");
  if (!box || !window.lesson) return;
  const { axes } = lesson.data;
  const controls = {};
  for (const element of box.querySelectorAll("[data-control]")) {
    const range = element.querySelector("input[type=range]");
    controls[element.dataset.control] = {
      element,
      range,
      radios: range ? [] : [...element.querySelectorAll("input[type=radio]")],
      value: element.querySelector("[data-value]"),
      was: element.querySelector("[data-was]"),
      note: element.querySelector("[data-note]"),
      why: element.querySelector("[data-why]"),
    };
  }
  const textOf = (name, value) => axes[name].texts[axes[name].values.indexOf(value)];

  for (const [name, { range, radios }] of Object.entries(controls)) {
    range?.addEventListener("input", () => lesson.set({ [name]: axes[name].values[range.valueAsNumber] }, "control"));
    for (const radio of radios) {
      radio.addEventListener("change", () => { if (radio.checked) lesson.set({ [name]: radio.value }, "control"); });
      // on its way to a choice: its numbers may come
      radio.parentElement.addEventListener("pointerenter", () => {
        lesson.load(lesson.settled({ ...lesson.point, [name]: radio.value })).catch(() => {});
      });
    }
  }
  box.querySelector("[data-reset]").addEventListener("click", () => lesson.set(lesson.data.defaults, "reset"));

  const mark = (control, name, point, change) => {
    const marked = change.by === "link" && change.moved.includes(name);
    control.element.toggleAttribute("data-changed", marked);
    if (control.was) lesson.write(control.was, marked ? textOf(name, change.before[name]) : "");
    for (const radio of control.radios) {
      radio.parentElement.toggleAttribute("data-was", marked && radio.value === change.before[name]);
    }
  };

  const show = (point, change) => {
    for (const [name, control] of Object.entries(controls)) {
      const index = axes[name].values.indexOf(point[name]);
      if (control.range) {
        if (control.range.valueAsNumber !== index) control.range.value = String(index);
        lesson.mark(control.range, "aria-valuetext", axes[name].spoken[point.phase][index]);
        lesson.write(control.value, axes[name].texts[index]);
        control.note?.classList.toggle("past", point[name] > Number(control.note.dataset.note));
      }
      const reasons = new Set();
      for (const radio of control.radios) {
        radio.checked = radio.value === point[name];
        const refused = lesson.refusal(name, radio.value, point);
        radio.disabled = Boolean(refused);
        if (refused) reasons.add(refused.reason);
      }
      if (control.why) lesson.write(control.why, [...reasons].join("; "));
      mark(control, name, point, change);
    }
  };
  lesson.onPoint(show);
  // a browser may have restored the inputs of an earlier visit
  addEventListener("pageshow", () => show(lesson.point, { by: "address", moved: [], before: lesson.point }));
})();
