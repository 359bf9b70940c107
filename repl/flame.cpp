// A profile as one HTML page that needs no other files: a flame graph and the table of lines.
#include <map>
#include <memory>
#include <vector>

#include "repl/profile.hpp"

namespace slope::repl {

namespace {

struct Node {
  std::uint64_t samples = 0;
  std::map<std::uint32_t, std::unique_ptr<Node>> callees;  // by frame
};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

// JSON within a script element.
std::string in_script(std::string text) {
  for (std::size_t at = 0; (at = text.find('<', at)) != std::string::npos; at += 6) text.replace(at, 1, "\\u003c");
  return text;
}

// [frame, samples, [callees…]]
void write_node(std::uint32_t frame, const Node& node, std::string& out) {
  out += "[" + std::to_string(frame) + "," + std::to_string(node.samples) + ",[";
  bool is_first = true;
  for (const auto& [callee, inner] : node.callees) {
    if (!is_first) out += ",";
    is_first = false;
    write_node(callee, *inner, out);
  }
  out += "]]";
}

constexpr const char* style =
    "body{font:14px sans-serif;margin:1.5em;background:#fff;color:#222}#flame{position:relative;user-select:none}"
    "#flame "
    "div{position:absolute;height:19px;line-height:19px;overflow:hidden;white-space:nowrap;box-sizing:border-box;"
    "border:1px solid #fff;border-radius:2px;font-size:12px;padding:0 3px;cursor:pointer;color:#222}"
    "#flame div.found{background:#d55fde!important}pre{background:#f6f6f6;padding:.7em;overflow:auto}"
    "#about{min-height:1.4em;margin:.6em 0}input{font:inherit}"
    "@media(prefers-color-scheme:dark){body{background:#1b1b1b;color:#ddd}pre{background:#262626}#flame div{"
    "border-color:#1b1b1b}}";

// A click on a frame makes it as wide as the page; a click on the lowest row goes back.
constexpr const char* script =
    "var root=data.tree,top_=root,box=document.getElementById('flame'),about=document.getElementById('about'),"
    "find=document.getElementById('find');"
    "function title(f){var x=data.frames[f];return f<0?'all':x[0]+(x[1]?'  '+x[1]:'')}"
    "function color(f){if(f<0)return'#ccc';var x=data.frames[f];return x[3]?'#b8c4ce':x[2]?'#ffb454':'#ffe08a'}"
    "function path(n,to){if(n===to)return[n];for(var i=0;i<n[2].length;i++){var "
    "p=path(n[2][i],to);if(p)return[n].concat("
    "p)}return null}"
    "function draw(){box.textContent='';var depth=0,w=box.clientWidth,up=path(root,top_);"
    "function put(n,x,width,row){if(width<1)return;depth=Math.max(depth,row);var d=document.createElement('div');"
    "d.style.left=x+'px';d.style.width=width+'px';d.dataset.row=row;d.textContent=width>30?title(n[0]):'';"
    "d.style.background=color(n[0]);var q=find.value;if(q&&title(n[0]).indexOf(q)>=0)d.className='found';"
    "d.onmouseover=function(){about.textContent=title(n[0])+'  —  '+n[1]+' samples, '+(100*n[1]/root[1]).toFixed(1)+' "
    "%'};"
    "d.onclick=function(){top_=n;draw()};box.appendChild(d)}"
    "up.slice(0,-1).forEach(function(n,i){put(n,0,w,i)});"
    "(function walk(n,x,width,row){put(n,x,width,row);n[2].forEach(function(c){var "
    "cw=width*c[1]/n[1];if(cw>=1)walk(c,x,"
    "cw,row+1);x+=cw})})(top_,0,w,up.length-1);"
    "box.style.height=(depth+1)*20+'px';[].forEach.call(box.children,function(d){d.style.bottom=d.dataset.row*20+'px'})"
    "}"
    "find.oninput=draw;addEventListener('resize',draw);draw();";

}  // namespace

std::string flame_html(const Profile& profile, const std::string& name) {
  Node root;
  for (const ProfileStack& stack : profile.stacks) {
    root.samples += stack.samples;
    Node* at = &root;
    for (const std::uint32_t frame : stack.frames) {
      std::unique_ptr<Node>& callee = at->callees[frame];
      if (!callee) callee = std::make_unique<Node>();
      at = callee.get();
      at->samples += stack.samples;
    }
  }
  std::string frames;  // [function, place, machine code, library]
  for (const ProfileFrame& frame : profile.frames) {
    const std::string place = frame.file.empty() ? "" : frame.file + ":" + std::to_string(frame.line);
    frames += (frames.empty() ? "[" : ",\n[") + json_text(frame.function) + "," + json_text(place) + "," +
              (frame.compiled ? "1" : "0") + "," + (frame.library ? "1" : "0") + "]";
  }
  std::string tree = "[-1," + std::to_string(root.samples) + ",[";
  bool is_first = true;
  for (const auto& [frame, node] : root.callees) {
    if (!is_first) tree += ",";
    is_first = false;
    write_node(frame, *node, tree);
  }
  tree += "]]";
  return "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + escaped(name) +
         "</title>\n<style>" + style + "</style></head><body>\n<h1>" + escaped(name) +
         "</h1>\n<p>Width is time; callees stand on their callers. Orange: machine code, yellow: interpreted, grey: "
         "Slope's library. A click makes a frame as wide as the page. <input id=\"find\" placeholder=\"find\"></p>\n"
         "<div id=\"about\"></div><div id=\"flame\"></div>\n<h2>Lines</h2>\n<pre>" +
         escaped(profile_table(profile)) + "</pre>\n<script>var data={frames:[" + in_script(frames) +
         "],\ntree:" + tree + "};\n" + script + "</script></body></html>\n";
}

}  // namespace slope::repl
