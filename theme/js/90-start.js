// Everyone listens: take the point from the address.
(() => {
  "use strict";
  if (window.lesson) lesson.start();
})();
