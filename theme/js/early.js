// Before anything is drawn: the colour scheme that the reader chose on an earlier visit.
(() => {
  "use strict";
  try {
    const scheme = localStorage.getItem("scheme");
    if (scheme === "light" || scheme === "dark") document.documentElement.dataset.scheme = scheme;
  } catch {
    // no storage, no memory
  }
})();
