// The numbers: columns of text, looked up by position and never computed. One shard for each choice of GPU, weights,
// cache and heads; it arrives as a classic script, which works over http, from a file and under the strict policy.
(() => {
  "use strict";
  if (!window.lesson) return;
  const { axes, shardAxes, tables, scripts, shard, defaults } = lesson.data;
  const shards = {};
  const loading = {};
  const idOf = (point) => shardAxes.map((axis) => point[axis]).join("-");
  const places = {}; // axis → value → index
  for (const axis of ["phase", "context", "tokens"]) {
    places[axis] = new Map(axes[axis].values.map((value, index) => [value, index]));
  }

  lesson.shard = (document) => { shards[document.id] = document; };
  lesson.shard(shard);
  lesson.ready = (point) => idOf(point) in shards;

  lesson.load = (point) => {
    const id = idOf(point);
    if (id in shards) return Promise.resolve();
    loading[id] ??= new Promise((resolve, reject) => {
      const script = document.createElement("script");
      script.onload = script.onerror = () => {
        script.remove();
        if (id in shards) return resolve();
        delete loading[id]; // the next try is a new one
        return reject(new Error(id));
      };
      script.src = scripts[id];
      document.head.append(script);
    });
    return loading[id];
  };

  // hundreds of texts are looked up at one point after another
  let last = { point: null, document: null };
  const shardOf = (point) => {
    if (last.point !== point || !last.document) last = { point, document: shards[idOf(point)] };
    return last.document;
  };

  const raw = (document, column, point) => {
    const [phase, context, tokens, index] = document.columns[column];
    const at = phase * places.phase.get(point.phase) + context * places.context.get(point.context)
      + tokens * places.tokens.get(point.tokens);
    const data = document.data[index];
    return data.of ? data.of[data.at[at]] : data[at];
  };

  // the text of a column; {slots} in it are filled with the text of the column that they name
  lesson.text = (column, point = lesson.point) => {
    const document = shardOf(point);
    if (column === "tokens") return axes.tokens.texts[places.tokens.get(point.tokens)];
    if (column in document.constants) return document.constants[column];
    if (column.endsWith(".share")) return tables.share[raw(document, column, point)];
    if (column.endsWith(".rough")) return tables.rough[raw(document, column.replace(".rough", ".share"), point)];
    const text = String(raw(document, column, point));
    return text.includes("{") ? text.replace(/\{([^}]+)\}/g, (_, slot) => lesson.text(slot, point)) : text;
  };

  lesson.has = (column) => column in shard.columns || column in shard.constants || column.endsWith(".rough");

  // the number that a cell shows, for what is drawn of it; null where it shows a dash
  lesson.value = (text) => {
    const number = Number.parseFloat(text.replaceAll(",", "").replace("< ", ""));
    return Number.isNaN(number) ? null : number;
  };

  lesson.isDefault = (point) => lesson.names.every((name) => point[name] === defaults[name]);
})();
