// Sent by `lesson serve` alone, never part of the site: reloads after a build, shows what failed over the old page.
(() => {
  "use strict";
  const mine = document.currentScript.dataset.version;
  const events = new EventSource("/__events");
  let overlay = document.querySelector("pre.build-error");

  events.addEventListener("built", (event) => {
    if (event.data !== mine) {
      events.close();
      location.reload();
    }
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
