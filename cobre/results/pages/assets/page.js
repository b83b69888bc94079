"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const drawn = new Map(); // figure id -> chosen entry
  let figures = {};

  // Theme: what was chosen last, else what the system prefers.
  const remembered = () => { try { return localStorage.getItem("cobre-theme"); } catch { return null; } };
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const setTheme = (name) => {
    root.dataset.theme = name;
    const button = byId("theme");
    button.textContent = name === "dark" ? "Light colours" : "Dark colours";
    button.setAttribute("aria-pressed", String(name === "dark"));
    redraw();
  };
  const asPreferred = () => setTheme(remembered() || (system.matches ? "dark" : "light"));

  // Colours are roles, "@blue" or "@blue/0.2", looked up in the style sheet of the theme.
  const colour = (role) => {
    const [name, share] = role.slice(1).split("/");
    const hex = getComputedStyle(root).getPropertyValue("--" + name).trim();
    if (!hex) return role; // no role, but a text that begins like one
    if (share === undefined) return hex;
    const part = (at) => parseInt(hex.slice(at, at + 2), 16);
    return `rgba(${part(1)},${part(3)},${part(5)},${share})`;
  };
  const themed = (value) => {
    if (typeof value === "string") return /^@[a-z-]+(\/[\d.]+)?$/.test(value) ? colour(value) : value;
    if (Array.isArray(value)) return value.length > 2 && typeof value[0] === "number" ? value : value.map(themed);
    if (value === null || typeof value !== "object") return value;
    return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, themed(part)]));
  };
  const merged = (base, more) => {
    const result = { ...base };
    for (const [key, value] of Object.entries(more || {})) {
      const nested = value && typeof value === "object" && !Array.isArray(value);
      result[key] = nested ? merged(result[key] || {}, value) : value;
    }
    return result;
  };

  const traces = (figure, entry) => {
    if (!figure.choices) return figure.traces;
    return figure.traces.map((trace, at) => merged(trace, figure.choices[entry].traces[at]));
  };
  const layout = (figure, entry, width) => {
    const axis = {
      gridcolor: colour("@grid"), linecolor: colour("@rule"), zerolinecolor: colour("@rule"),
      automargin: true, exponentformat: "none", separatethousands: true, title: { standoff: 8 },
    };
    const narrow = width < 560;
    const base = {
      height: figure.height, autosize: true, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { color: colour("@ink"), family: getComputedStyle(document.body).fontFamily, size: narrow ? 11 : 12.5 },
      margin: { l: narrow ? 44 : 64, r: narrow ? 8 : 18, t: 30, b: 40 },
      hoverlabel: { bgcolor: colour("@card"), bordercolor: colour("@rule"), font: { color: colour("@ink") } },
      legend: { orientation: "h", x: 0, yref: "container", y: 0, yanchor: "bottom", traceorder: "normal" }, barcornerradius: 2, hoverdistance: 100, dragmode: narrow ? false : "zoom",
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("@soft"), activecolor: colour("@accent") },
    };
    const wanted = merged(merged(base, themed(figure.layout)), figure.choices && themed(figure.choices[entry].layout));
    for (const name of new Set(["xaxis", "yaxis", ...Object.keys(wanted)])) {
      if (/^[xy]axis\d*$/.test(name)) wanted[name] = merged(axis, wanted[name]);
    }
    return wanted;
  };
  const settings = {
    responsive: true, displaylogo: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
    toImageButtonOptions: { format: "png", scale: 2 },
  };
  const draw = (id) => {
    const place = byId("plot-" + id), entry = drawn.get(id) || 0, figure = figures[id];
    drawn.set(id, entry);
    place.style.minHeight = "";
    return Plotly.react(place, themed(traces(figure, entry)), layout(figure, entry, place.clientWidth), {
      ...settings, displayModeBar: place.clientWidth < 560 ? false : "hover", toImageButtonOptions: { ...settings.toImageButtonOptions, filename: id },
    });
  };
  const redraw = () => { for (const id of drawn.keys()) draw(id); };

  // One menu for each figure with choices; figures of the same group show the same plant.
  const choose = (id, entry) => {
    const label = figures[id].choices[entry].label, group = figures[id].group;
    for (const [other, figure] of Object.entries(figures)) {
      const at = other === id ? entry : group && figure.group === group ? figure.choices.findIndex((c) => c.label === label) : -1;
      if (at < 0) continue;
      byId("choose-" + other).value = String(at);
      const known = drawn.has(other);
      drawn.set(other, at);
      if (known || other === id) draw(other);
      else drawn.delete(other), pending.set(other, at);
    }
  };
  const pending = new Map();
  const fillMenus = (id) => {
    const menu = byId("choose-" + id), search = byId("search-" + id);
    const list = (text) => {
      const wanted = text.trim().toLowerCase();
      menu.replaceChildren(...figures[id].choices.flatMap((choice, at) =>
        choice.label.toLowerCase().includes(wanted) ? [new Option(choice.label, String(at))] : []));
    };
    list("");
    menu.addEventListener("change", () => choose(id, Number(menu.value)));
    if (search) search.addEventListener("input", () => {
      list(search.value);
      if (menu.options.length) choose(id, Number(menu.options[0].value));
    });
  };

  // The numbers of a figure as they are shown, as a file for a spreadsheet.
  const save = (id) => {
    const shown = traces(figures[id], drawn.get(id) || 0);
    const rows = [["series", "x", "y", "z"]];
    for (const trace of shown) {
      if (trace.z) trace.z.forEach((line, at) => line.forEach((value, to) => rows.push([trace.name || "", trace.x[to], trace.y[at], value])));
      else (trace.y || []).forEach((value, at) => rows.push([trace.name || "", trace.x ? trace.x[at] : at, value, ""]));
    }
    const quoted = (value) => /[",\n]/.test(value ?? "") ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? "");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([rows.map((row) => row.map(quoted).join(",")).join("\n") + "\n"], { type: "text/csv" }));
    link.download = id + ".csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };

  const unpacked = async (id) => {
    const bytes = Uint8Array.from(atob(byId(id).textContent.trim()), (c) => c.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  };
  const show = (text) => { const note = byId("notice"); note.hidden = false; note.textContent = text; };

  const start = async () => {
    byId("theme").addEventListener("click", () => {
      const next = root.dataset.theme === "dark" ? "light" : "dark";
      try { localStorage.setItem("cobre-theme", next); } catch { /* not kept where storage is refused */ }
      setTheme(next);
    });
    system.addEventListener("change", asPreferred);
    asPreferred();
    const wide = window.matchMedia("(min-width: 1080px)"), contents = document.querySelector("nav.contents details");
    const open = () => { contents.open = wide.matches; };
    wide.addEventListener("change", open);
    open();
    if (!byId("plotly")) return;
    if (typeof DecompressionStream === "undefined") {
      show("The plots of this page need a browser of 2023 or later (Chrome or Edge 80, Firefox 113, Safari 16.4). The texts and tables are complete without them.");
      return;
    }
    const [code, data] = await Promise.all([unpacked("plotly"), unpacked("data")]);
    const script = document.createElement("script");
    script.textContent = code;
    document.head.append(script);
    figures = JSON.parse(data);
    const seen = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        seen.unobserve(target);
        const id = target.id.slice(5);
        if (pending.has(id)) drawn.set(id, pending.get(id));
        draw(id);
      }
    }, { rootMargin: "600px" });
    for (const [id, figure] of Object.entries(figures)) {
      if (figure.choices && byId("choose-" + id)) fillMenus(id);
      byId("save-" + id).addEventListener("click", () => save(id));
      seen.observe(byId("plot-" + id));
    }
    let before = null;
    window.addEventListener("beforeprint", () => {
      before = root.dataset.theme;
      setTheme("light");
      for (const id of Object.keys(figures)) if (!drawn.has(id)) draw(id);
    });
    window.addEventListener("afterprint", () => { if (before) setTheme(before); });
    window.cobrePage = { figures, draw, choose, drawn };
    const links = new Map([...document.querySelectorAll("nav.contents a")].map((a) => [a.hash.slice(1), a]));
    const spy = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        for (const link of links.values()) link.removeAttribute("aria-current");
        links.get(target.getAttribute("aria-labelledby"))?.setAttribute("aria-current", "true");
      }
    }, { rootMargin: "-20% 0px -79% 0px" });
    for (const id of links.keys()) spy.observe(byId(id).parentElement);
  };
  start().catch((error) => {
    show("The plots of this page cannot be drawn: " + error.message);
    console.error(error);
  });
})();
