// The switch of the colour scheme: as the system has it, light, dark. It is remembered where the browser allows.
(() => {
  "use strict";
  const button = document.querySelector("[data-scheme-switch]");
  if (!button) return;
  const root = document.documentElement;
  const SCHEMES = ["system", "light", "dark"];

  const show = () => {
    const scheme = root.dataset.scheme ?? "system";
    button.textContent = `colours: ${scheme === "system" ? "auto" : scheme}`;
  };

  button.addEventListener("click", () => {
    const next = SCHEMES[(SCHEMES.indexOf(root.dataset.scheme ?? "system") + 1) % SCHEMES.length];
    if (next === "system") delete root.dataset.scheme;
    else root.dataset.scheme = next;
    try {
      if (next === "system") localStorage.removeItem("scheme");
      else localStorage.setItem("scheme", next);
    } catch {
      // not remembered, but chosen
    }
    show();
  });
  show();
})();
