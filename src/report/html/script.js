"use strict";
{
  const plots = [...document.querySelectorAll("svg[data-low]")];
  const span = Number(document.body.dataset.span);
  const time = s => s < 60 ? s.toFixed(1) + " s" : [[86400, "d"], [3600, "h"], [60, "m"], [1, "s"]]
    .map(([n, u], i, all) => [Math.floor((i ? s % all[i - 1][0] : s) / n), u])
    .filter(([n]) => n > 0).slice(0, 3).map(([n, u]) => n + " " + u).join(" ");
  const points = path => path.points ??= path.getAttribute("d").split(/(?=[MLV])/).filter(Boolean)
    .reduce((list, part) => {
      const [x, y] = part.slice(1).split(",").map(Number);
      if (part[0] === "V") { const p = list.at(-1); p.low = Math.max(p.low, x); p.high = Math.min(p.high, x); }
      else list.push({ x, low: y, high: y });
      return list;
    }, []);
  const show = x => {
    const s = (x - 52) / 656 * span;
    for (const svg of plots) {
      const low = Number(svg.dataset.low), high = Number(svg.dataset.high);
      const value = y => Number((low + (146 - y) / 136 * (high - low)).toPrecision(3));
      const words = [...svg.querySelectorAll("path.line")].reverse().map(path => {
        const near = points(path).reduce((best, p) => Math.abs(p.x - x) < Math.abs(best.x - x) ? p : best, { x: -999 });
        if (Math.abs(near.x - x) > Math.max(3, 1400 / points(path).length)) return "-";
        const a = value(near.low), b = value(near.high);
        return a === b ? String(a) : a + " to " + b;
      });
      svg.parentNode.querySelector("output").textContent = time(s) + ": " + words.join(" | ") + " " + svg.dataset.unit;
      const line = svg.querySelector(".cursor");
      line.setAttribute("x1", x); line.setAttribute("x2", x);
      svg.classList.add("on");
    }
  };
  const hide = () => plots.forEach(svg => { svg.classList.remove("on"); svg.parentNode.querySelector("output").textContent = ""; });
  for (const svg of plots) {
    svg.addEventListener("pointermove", e => {
      const box = svg.getBoundingClientRect();
      show(Math.min(708, Math.max(52, (e.clientX - box.left) / box.width * 720)));
    });
    svg.addEventListener("pointerleave", hide);
  }
}
