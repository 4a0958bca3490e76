// Keys, the theme, and the live page. Every other page works without this script.
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

  // named returns a name that a narrow page may break behind its punctuation, as the server writes names.
  const named = (name) => {
    const inner = document.createElement("bdi");
    name.split(/(?<=[^:./_@#-]{2}[:./_@#-])(?=.{3})/).forEach((part, i) => inner.append(...(i ? [document.createElement("wbr")] : []), part));
    return inner;
  };

  // The live page. All text is set as text, never as markup.
  const tailRows = 500;
  const tail = () => {
    const state = document.getElementById("tail-state");
    if (!state) return;
    const body = document.getElementById("tail"), left = document.getElementById("tail-left"), pause = document.getElementById("pause");
    const none = document.getElementById("tail-none"), table = body.closest(".scroll");
    const cell = (row, text, href) => {
      const td = row.insertCell();
      let inner = named(text);
      if (href) {
        const name = inner;
        inner = document.createElement("a");
        inner.href = href;
        inner.className = "id";
        inner.append(name);
      }
      td.append(inner);
      return td;
    };
    let source, missed = 0, late = 0, gone = 0;
    const tell = () => {
      const said = [];
      if (missed) said.push(`${missed} were too many to show`);
      if (late) said.push(`${late} were stored too late to show`);
      if (gone) said.push(`${gone} left this page, which keeps ${tailRows}`);
      left.hidden = !said.length;
      left.textContent = `Of the verdicts since this page was opened, ${said.join(", ")}.`;
    };
    const add = (v) => {
      const row = document.createElement("tr");
      const classes = { deny: "critical", review: "medium", proceed: "good" };
      cell(row, v.at.slice(11, 19)).title = v.at;
      cell(row, v.said).firstChild.className = "severity " + (classes[v.said] || "medium");
      cell(row, v.agent, "/agent?id=" + encodeURIComponent(v.agent));
      cell(row, (v.types || []).join(", ") + (v.all_types > (v.types || []).length ? `, ${v.all_types} in all` : ""));
      cell(row, v.trace, v.address);
      body.prepend(row);
      while (body.rows.length > tailRows) { body.rows[body.rows.length - 1].remove(); gone++; }
    };
    const closed = () => source.readyState === EventSource.CLOSED;
    // say tells the state. While there is no row, a sentence in its place says what will appear, if anything will.
    const say = (text) => {
      state.textContent = text;
      table.hidden = !body.rows.length;
      none.hidden = !table.hidden || closed();
    };
    const open = () => {
      source = new EventSource(state.dataset.events);
      say("Connecting…");
      source.addEventListener("open", () => say("Waiting for verdicts."));
      source.addEventListener("quiet", () => say("Up to date."));
      source.addEventListener("trouble", (e) => say(JSON.parse(e.data)));
      source.addEventListener("news", (e) => {
        const news = JSON.parse(e.data);
        (news.verdicts || []).reverse().forEach(add);
        missed += news.left_out; late += news.late;
        say("Up to date.");
        tell();
      });
      source.addEventListener("end", (e) => { source.close(); say(JSON.parse(e.data) + " Load the page again."); });
      source.addEventListener("error", () => {
        say(closed() ? "This page may not watch now, or too many do. Load it again." : "The connection was interrupted; it continues where it was.");
      });
    };
    pause.hidden = false;
    pause.addEventListener("click", () => {
      const paused = closed();
      if (paused) open(); else { source.close(); say("Paused. What is judged meanwhile is not shown."); }
      pause.textContent = paused ? "Pause" : "Continue";
    });
    open();
  };

  document.addEventListener("DOMContentLoaded", () => {
    tail();
    document.getElementById("theme").addEventListener("click", nextTheme);
    document.getElementById("keys").addEventListener("click", keys["?"]);
  });
})();
