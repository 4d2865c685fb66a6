// Text and attributes are changed in place and only where they differ: a text node that stays costs the browser a fraction
// of one that is replaced.
(() => {
  "use strict";
  if (!window.lesson) return;

  lesson.write = (element, text) => {
    const node = element.firstChild;
    if (node?.nodeType !== Node.TEXT_NODE || node.nextSibling || text === "") {
      if (element.textContent !== text) element.textContent = text;
    } else if (node.data !== text) node.data = text;
  };

  lesson.mark = (element, name, value) => {
    if (element.getAttribute(name) !== value) element.setAttribute(name, value);
  };
})();
