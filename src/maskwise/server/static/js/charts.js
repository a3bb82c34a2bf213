/** Bar charts as inline SVG, drawn from data. */

const SPACE = "http://www.w3.org/2000/svg";
const LINE = 15;

/** An SVG element. @param {string} tag @param {Record<string, string | number>} attributes */
export function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SPACE, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** Horizontal bars with their names. @param {{name: string, value: number}[]} rows @param {string} label */
export function rowChart(rows, label) {
  const [width, row, names] = [560, 28, 300];
  const most = Math.max(1, ...rows.map(({ value }) => value));
  const chart = svg("svg", { class: "chart", role: "img", "aria-label": `${label}: ${rows.map(({ name, value }) => `${name} ${value}`).join(", ")}` });
  let top = 0;
  for (const { name, value } of rows) {
    const length = Math.max(1, ((width - names - 46) * value) / most);
    const lines = wrap(name, 44);
    chart.append(
      svg("text", {}, ...lines.map((line, index) => svg("tspan", { x: 0, y: top + 18 + index * LINE }, index ? ` ${line}` : line))),
      svg("rect", { class: "bar", x: names, y: top + 6, width: length, height: row - 12, rx: 3 }),
      svg("text", { class: "value", x: names + length + 7, y: top + 18 }, value.toLocaleString()));
    top += row + (lines.length - 1) * LINE;
  }
  chart.setAttribute("viewBox", `0 0 ${width} ${Math.max(row, top)}`);
  return chart;
}

/** Vertical bars over time. @param {{name: string, value: number}[]} columns @param {string} label */
export function columnChart(columns, label) {
  const [width, height, foot, left] = [560, 200, 22, 34];
  const most = Math.max(1, ...columns.map(({ value }) => value));
  const step = Math.min(90, (width - left) / Math.max(1, columns.length));
  const chart = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label}: ${columns.map(({ name, value }) => `${name} ${value}`).join(", ")}` });
  for (const share of [0, 0.5, 1]) {
    const y = (height - foot) * (1 - share * 0.92);
    chart.append(svg("line", { x1: left, x2: width, y1: y, y2: y }), svg("text", { x: left - 7, y: y + 4, "text-anchor": "end" }, String(Math.round(most * share))));
  }
  columns.forEach(({ name, value }, index) => {
    const tall = ((height - foot) * 0.92 * value) / most;
    const bar = svg("rect", { class: "bar", x: left + index * step + step * 0.12, y: height - foot - tall, width: Math.min(60, step * 0.76), height: tall, rx: 2 });
    bar.append(svg("title", {}, `${name}: ${value}`));
    chart.append(bar);
    if (index % Math.ceil(columns.length / 7) === 0) chart.append(svg("text", { x: left + index * step + step * 0.12, y: height - 4 }, name));
  });
  return chart;
}

/** Values with their intervals, one row each. @param {{name: string, value: number, low?: number | null, high?: number | null}[]} rows @param {string} label @param {(value: number) => string} show */
export function intervalChart(rows, label, show) {
  const [width, row, names, right] = [560, 28, 200, 72];
  const ends = rows.flatMap(({ value, low, high }) => [value, low ?? value, high ?? value]);
  const least = Math.min(...ends);
  const span = Math.max(...ends) - least || 1;
  const x = (value) => names + ((value - least) / span) * (width - names - right);
  const chart = svg("svg", { class: "chart intervals", viewBox: `0 0 ${width} ${row * rows.length}`, role: "img", "aria-label": `${label}: ${rows.map(({ name, value }) => `${name} ${show(value)}`).join(", ")}` });
  rows.forEach(({ name, value, low, high }, index) => {
    const y = index * row + row / 2;
    const short = name.length > 20 ? `${name.slice(0, 19)}…` : name;
    chart.append(svg("text", { x: 0, y: y + 4 }, short), svg("line", { class: "reach", x1: x(low ?? value), x2: x(high ?? value), y1: y, y2: y }), svg("circle", { class: "bar", cx: x(value), cy: y, r: 5 }), svg("text", { class: "value", x: x(high ?? value) + 10, y: y + 4 }, show(value)));
  });
  return chart;
}

/** The words of a text in lines of at most `length` characters. */
function wrap(text, length) {
  const lines = [""];
  for (const word of text.split(" ")) {
    const longer = `${lines.at(-1)} ${word}`.trim();
    if (longer.length <= length || !lines.at(-1)) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
