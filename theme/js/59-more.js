// What a reader may take along: the address of the point, the ledger as CSV or JSON, the picture as SVG or PNG.
(() => {
  "use strict";
  const menu = document.querySelector("[data-more]");
  if (!menu || !window.lesson) return;
  const status = document.querySelector("[data-announce]");
  const say = (text) => { lesson.say(text); status.textContent = text; };

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  const fileName = (ending) => `${lesson.names.map((name) => lesson.point[name]).join("-")}.${ending}`;

  // the ledger as it is shown: a heading with its unit, and the text of every cell
  const ledger = () => {
    const rows = [...document.querySelectorAll(".ledger tr")].map((row) => [...row.querySelectorAll("th, td:not(.bar)")]);
    return rows.map((cells) => cells.map((cell) => cell.textContent.trim().replace(/\s+/g, " ")));
  };
  const csv = () => ledger().map((row) => row.map((text) => `"${text.replaceAll('"', '""')}"`).join(",")).join("\n");
  const json = () => {
    const [heads, ...rows] = ledger();
    const cells = rows.map((row) => Object.fromEntries(row.map((text, i) => [heads[i], text])));
    return JSON.stringify({ point: lesson.point, ledger: cells }, null, 1);
  };

  // the drawing in sight, with the colours that the style sheet gives it
  const drawing = () => {
    const shown = [...document.querySelectorAll(".picture svg[role=img]")].find((svg) => svg.getClientRects().length);
    const copy = shown.cloneNode(true);
    copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    const originals = [shown, ...shown.querySelectorAll("*")];
    for (const [i, element] of [copy, ...copy.querySelectorAll("*")].entries()) {
      const { fill, stroke } = getComputedStyle(originals[i]);
      for (const [name, value] of [["fill", fill], ["stroke", stroke]]) {
        if (element.hasAttribute(name)) element.setAttribute(name, value);
      }
    }
    const paper = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    for (const [name, value] of [["width", "100%"], ["height", "100%"]]) paper.setAttribute(name, value);
    paper.setAttribute("fill", getComputedStyle(document.documentElement).backgroundColor);
    copy.prepend(paper);
    const { width, height } = shown.viewBox.baseVal;
    return { text: new XMLSerializer().serializeToString(copy), width, height };
  };

  const png = async () => {
    const { text, width, height } = drawing();
    const image = new Image();
    image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width * 2, height * 2];
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(blob, fileName("png")), "image/png");
  };

  const share = async () => {
    const address = `${location.href.split("#")[0]}${lesson.fragment(lesson.point)}`;
    try {
      await navigator.clipboard.writeText(address);
      say("Link to this point copied.");
    } catch {
      say("The link to this point is in the address bar.");
    }
  };

  const ACTIONS = {
    share,
    csv: () => save(new Blob([`${csv()}\n`], { type: "text/csv" }), fileName("csv")),
    json: () => save(new Blob([`${json()}\n`], { type: "application/json" }), fileName("json")),
    svg: () => save(new Blob([drawing().text], { type: "image/svg+xml" }), fileName("svg")),
    png,
  };
  const close = () => {
    menu.querySelector("summary").focus(); // first: what is hidden loses it to nobody
    menu.open = false;
  };
  menu.addEventListener("click", async (event) => {
    const action = event.target.closest("button")?.dataset.take;
    if (!action) return;
    await ACTIONS[action]();
    close();
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !menu.open) return;
    event.stopPropagation(); // the strip that it may stand in stays open
    close();
  });
  // to what holds the menu focus goes where a browser gives a pressed button none
  menu.addEventListener("focusout", ({ relatedTarget: to }) => {
    if (to && !menu.contains(to) && !to.contains(menu)) menu.open = false;
  });
  document.addEventListener("pointerdown", (event) => { if (!menu.contains(event.target)) menu.open = false; });
})();
