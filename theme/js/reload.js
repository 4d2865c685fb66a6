// Sent by `lesson serve` alone, never part of the site: reloads after a build, shows what failed over the old page.
(() => {
  "use strict";
  let mine = document.currentScript.dataset.version;
  const events = new EventSource("/__events");
  let overlay = document.querySelector("pre.build-error");

  // The new style replaces the old one once it is there, so that the page is never without.
  const restyle = (address) => {
    const old = [...document.querySelectorAll('link[rel="stylesheet"]')];
    const link = old[0].cloneNode();
    link.href = address;
    link.addEventListener("load", () => old.forEach((each) => each.remove()));
    old.at(-1).after(link);
    overlay?.remove();
    overlay = null;
  };

  events.addEventListener("built", (event) => {
    const [version, before, stylesheet] = event.data.split("\n");
    if (version === mine) return;
    if (before === mine && stylesheet) {
      mine = version;
      restyle(stylesheet);
      return;
    }
    events.close();
    location.reload();
  });

  events.addEventListener("failed", (event) => {
    if (!overlay) {
      overlay = document.createElement("pre");
      overlay.className = "build-error";
      overlay.setAttribute("role", "alert");
      document.body.append(overlay);
    }
    overlay.textContent = event.data;
  });
})();
