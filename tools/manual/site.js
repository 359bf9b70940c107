// Search over `sections` (index.js), colours of code, light and dark.
"use strict";
const root = document.documentElement;
try { if (localStorage.theme) root.dataset.theme = localStorage.theme; } catch (e) { /* files without storage */ }
document.getElementById("theme").onclick = () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try { localStorage.theme = root.dataset.theme; } catch (e) { /* as above */ }
};

const field = document.getElementById("search"), list = document.getElementById("found");
function score(section, words) {
  const title = section[3].toLowerCase(), text = section[4].toLowerCase();
  let sum = 0;
  for (const word of words) {
    if (title === word) sum += 100;
    else if (title.includes(word)) sum += 20;
    else if (text.includes(word)) sum += 1 + Math.min(4, text.split(word).length - 1);
    else return 0;
  }
  return sum;
}
field.oninput = () => {
  const words = field.value.toLowerCase().split(/\s+/).filter(w => w);
  list.replaceChildren();
  if (!words.length) return;
  const hits = sections.map(s => [score(s, words), s]).filter(h => h[0] > 0).sort((a, b) => b[0] - a[0]).slice(0, 12);
  for (const [, s] of hits) {
    const item = document.createElement("li"), link = document.createElement("a"), small = document.createElement("small");
    link.href = s[0] + "#" + s[1];
    link.textContent = s[3];
    small.textContent = s[2];
    item.append(link, small);
    list.append(item);
  }
  if (!hits.length) list.textContent = "nothing found";
};
document.addEventListener("keydown", e => {
  if (e.key === "/" && document.activeElement !== field) { e.preventDefault(); field.focus(); }
});

const words = "function|end|if|else|elseif|for|while|in|return|struct|mutable|abstract|type|module|using|import|export|const|let|do|begin|try|catch|" +
  "finally|macro|quote|true|false|nothing|where|break|continue|global|local|auto|int|double|void|class|include|namespace|template|constexpr";
const token = new RegExp('("""[\\s\\S]*?"""|"(?:\\\\.|[^"\\\\\\n])*")|(#[^\\n]*|//[^\\n]*)|\\b(' + words + ')\\b', "g");
for (const code of document.querySelectorAll("code.language-julia, code.language-cpp, code.language-c")) {
  const parts = [], text = code.textContent;
  let from = 0;
  for (const m of text.matchAll(token)) {
    if (m[2] && m[2][0] === "#" && code.className === "language-cpp") continue;
    parts.push(text.slice(from, m.index));
    const span = document.createElement("span");
    span.className = m[1] ? "string" : m[2] ? "comment" : "word";
    span.textContent = m[0];
    parts.push(span);
    from = m.index + m[0].length;
  }
  parts.push(text.slice(from));
  code.replaceChildren(...parts);
}
