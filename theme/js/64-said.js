// What the bench says beside what it shows (a value that had to move, numbers that did not come, a link copied) for the eye
// too: a line that goes when the bench moves on, or once there was time to read it. The status has it for the ear.
(() => {
  "use strict";
  const line = document.querySelector("[data-said]");
  if (!line || !window.lesson) return;
  const READ = 12_000;
  let timer = 0;
  line.setAttribute("aria-hidden", "true");

  lesson.say = (text) => {
    clearTimeout(timer);
    lesson.write(line, text);
    if (line.hidden === Boolean(text)) line.hidden = !text;
    if (text) timer = setTimeout(() => lesson.say(""), READ);
  };
  lesson.onPoint((_, { notes }) => lesson.say(notes.join(" ")));
})();
