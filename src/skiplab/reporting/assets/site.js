// The theme is set before the page is drawn; the rest waits for the document. No library, no request.
"use strict";

(function () {
  const root = document.documentElement;
  const KEY = "skiplab-theme";

  // Storage is missing or forbidden for files in some browsers; the page then follows the system.
  function stored() {
    try { return localStorage.getItem(KEY); } catch { return null; }
  }
  function store(theme) {
    try { localStorage.setItem(KEY, theme); } catch { /* the choice lasts for this page only */ }
  }
  function isDark() {
    if (root.dataset.theme) return root.dataset.theme === "dark";
    return matchMedia("(prefers-color-scheme: dark)").matches;
  }

  const saved = stored();
  if (saved === "dark" || saved === "light") root.dataset.theme = saved;

  function startTheme() {
    const button = document.querySelector("[data-theme-toggle]");
    function name() {
      button.textContent = isDark() ? "Light" : "Dark";
      button.setAttribute("aria-label", "Switch to the " + button.textContent.toLowerCase() + " theme");
    }
    button.hidden = false;
    button.addEventListener("click", function () {
      root.dataset.theme = isDark() ? "light" : "dark";
      store(root.dataset.theme);
      name();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
    name();
  }

  function startFilter() {
    const form = document.querySelector("[data-filter]");
    if (!form) return;
    const items = Array.from(document.querySelectorAll("[data-item]"));
    const groups = Array.from(document.querySelectorAll("[data-group]"));
    const count = document.querySelector("[data-filter-count]");
    const none = document.querySelector("[data-filter-none]");

    // The filter stands in the address, so that a filtered board can be linked to.
    const NAMES = ["paper", "verdict", "words"];
    function fromAddress() {
      const asked = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
      for (const name of NAMES) form.elements[name].value = asked.get(name) || "";
    }
    function toAddress() {
      const asked = new URLSearchParams();
      for (const name of NAMES) if (form.elements[name].value) asked.set(name, form.elements[name].value);
      const text = asked.toString();
      if (text || location.hash.includes("=")) history.replaceState(null, "", text ? "#" + text : "#board");
    }

    function apply() {
      const paper = form.elements.paper.value;
      const verdict = form.elements.verdict.value;
      const sought = form.elements.words.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      for (const item of items) {
        const fits = (!paper || item.dataset.paper === paper)
          && (!verdict || item.dataset.verdicts.split(" ").includes(verdict))
          && sought.every((word) => item.dataset.words.includes(word));
        item.hidden = !fits;
        shown += fits;
      }
      for (const group of groups) group.hidden = !group.querySelector("[data-item]:not([hidden])");
      count.textContent = shown + " of " + items.length + " items";
      none.hidden = shown > 0;
    }

    form.hidden = false;
    function changed() { apply(); toAddress(); }
    form.addEventListener("input", changed);
    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("reset", () => setTimeout(changed));
    addEventListener("hashchange", () => { if (location.hash.includes("=")) { fromAddress(); apply(); } });
    fromAddress();
    apply();
  }

  document.addEventListener("DOMContentLoaded", function () {
    startTheme();
    startFilter();
  });
})();
