// Keys, and the theme. Every page works without this script.
"use strict";
(() => {
  const themes = ["", "light", "dark"]; // "" is that of the system
  const root = document.documentElement;
  const stored = () => { try { return localStorage.getItem("theme") || ""; } catch { return ""; } };
  const show = (theme) => { if (theme) root.dataset.theme = theme; else delete root.dataset.theme; };
  show(stored()); // before the page is drawn

  const nextTheme = () => {
    const theme = themes[(themes.indexOf(stored()) + 1) % themes.length];
    try { localStorage.setItem("theme", theme); } catch { /* it lasts for this page */ }
    show(theme);
  };

  const rows = () => [...document.querySelectorAll("tbody tr")].filter((row) => row.querySelector("a"));
  const move = (by) => {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.classList.contains("at"));
    const to = at < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + by));
    if (at >= 0) all[at].classList.remove("at");
    all[to].classList.add("at");
    all[to].querySelector("a").focus({ preventScroll: true });
    all[to].scrollIntoView({ block: "nearest" });
  };

  let going = 0; // when g was pressed
  const keys = {
    j: () => move(1),
    k: () => move(-1),
    r: () => location.reload(),
    t: nextTheme,
    g: () => { going = Date.now(); },
    "/": () => document.querySelector("input[type=search]")?.focus(),
    "?": () => document.getElementById("help").showModal(),
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, dialog")) return;
    if (going && Date.now() - going < 1500) {
      going = 0;
      const to = [...document.querySelectorAll("nav a[data-go]")].find((a) => a.dataset.go === event.key);
      if (to) { event.preventDefault(); to.click(); }
      return;
    }
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", nextTheme);
    document.getElementById("keys").addEventListener("click", keys["?"]);
  });
})();
