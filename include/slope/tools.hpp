// For prompts, editors and other tools: the pieces of a text, completions at the cursor, the meaning of a name, what
// the compiler knows of a call. The tool owns an Engine and calls these functions with it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "slope/engine.hpp"

namespace slope::api::tools {

// --- text ---

enum class PieceKind : unsigned char {
  plain,
  keyword,
  string,
  number,
  comment,
  macro,
  symbol,     // :name
  function,   // a name that is called
  operation,  // an operator
  bracket,
  error,  // not a token
};

// Bytes [begin, end) of a text. Text that no piece covers is white space or plain names.
struct Piece {
  std::size_t begin = 0;
  std::size_t end = 0;
  PieceKind kind = PieceKind::plain;
};

// Any bytes are accepted; pieces come in order and do not overlap.
std::vector<Piece> classify(std::string_view text);

struct Problem {
  std::size_t begin = 0;  // bytes of the text
  std::size_t end = 0;
  bool is_warning = false;
  std::string message;
  std::string hint;
};

// The syntax errors of a text; nothing of it runs.
std::vector<Problem> syntax_problems(std::string_view text);

// The formatted text: indentation, blanks at ends of lines, blank lines. Returns an error of kind syntax when the text
// does not parse. Comments, strings and the tokens of each line stay. Formatting a formatted text changes nothing.
Result<std::string> format(std::string_view text);

// Writes a file as a whole: the old one stays as it was when that fails. Returns why it failed; empty: it is written.
std::string replace_file(const std::string& path, std::string_view text);

// --- checking ---

struct CheckOptions {
  bool lookups = false;  // also calls whose method is looked up when they run
};

struct CheckProblem {
  Position begin, end;
  bool is_error = false;  // else a warning
  std::string code;       // "syntax", "undefined", "no-method", "no-field", …
  std::string message;
  std::string hint;     // what to do; may be empty
  std::string excerpt;  // the place, the line, and a caret, as messages of errors show them
};

// What is wrong with a program, without running its statements. Its definitions run in an engine of its own, which may
// reach nothing outside; files that it includes by name are read, relative to `name`.
std::vector<CheckProblem> check(const std::string& name, std::string text, const CheckOptions& options = {});
std::string check_json(const std::vector<CheckProblem>& problems);  // an array of objects

// --- names ---

enum class CompletionKind : unsigned char {
  name,
  keyword,
  module,
  type,
  function,
  field,
  method,
  argument,
  path,
  macro
};

struct Completion {
  std::string text;  // what stands in the place from `begin` to the cursor; of a method: its signature, to be read
  CompletionKind kind = CompletionKind::name;
};

struct Completions {
  std::size_t begin = 0;
  std::vector<Completion> candidates;  // keyword arguments first, then by text
};

// Completions at `cursor` (a byte offset): names, keywords, modules, fields of a value or of an expression whose type
// can be inferred (the expression does not run), after `(` the methods of a function and its keyword arguments, in
// strings paths of files, in `d["` the keys of the dictionary that a name has.
Completions complete(Engine& engine, std::string_view text, std::size_t cursor);

// Documentation of a name, a keyword, an operator or a macro ("@time"), with its methods, fields or names.
Result<std::string> help(Engine& engine, std::string_view name);

// The value as the prompt shows it: cut to a screen of `rows` and `columns`, without the middle of large arrays.
Result<std::string> display(Engine& engine, const Value& value, int rows, int columns);

// A value in the forms in which it can be shown: MIME types and texts, "text/plain" first. What is no text is in base 64.
using Forms = std::vector<std::pair<std::string, std::string>>;

// A program that shows more than text, such as a notebook. The functions are called while a script runs, on the thread
// that uses the engine; an exception from them is an error of the script.
struct FrontEnd {
  std::function<void(const Forms&)> show;  // what `display(x)` is given; without: it prints
  std::function<std::string()> read_line;  // in place of standard input, as `readline` wants it; "": the end of input
};
void set_front_end(Engine& engine, FrontEnd front_end);

// The forms of a value: `show(io, MIME("text/html"), x)` and its like, where such a method exists.
Result<Forms> forms(Engine& engine, const Value& value, int rows, int columns);

// What is known of the name or the call at `cursor`: its inferred type or its value, and its documentation. Nothing of the
// text runs. Empty: nothing is known.
std::string describe(Engine& engine, std::string_view text, std::size_t cursor);

// Whether the functions of scripts that print code may colour it (`@code_warntype`).
void set_color(Engine& engine, bool color);

// Where the processor time of compiling went, by function and stage, as a table; empty unless SLOPE_TIMES is set.
std::string compile_times(Engine& engine);

// What the script that just ran requests from the prompt, once: "edit:LINE:FILE", "descend:CALL"; empty: nothing.
std::string take_request(Engine& engine);

// The line that an error or a trace names, with a caret under the column; empty when the text is not available.
std::string excerpt(Engine& engine, const Position& position);

// --- a language server ---

// https://microsoft.github.io/language-server-protocol/: documents, each with an engine of its own in which its
// definitions run, never its other statements. The caller reads and writes the frames, on one thread.
class LanguageServer {
 public:
  // Names of characters that begin so, and the characters: "\alpha", "α".
  using Symbols = std::function<std::vector<std::pair<std::string, std::string>>(std::string_view prefix)>;

  explicit LanguageServer(Symbols symbols = {});
  ~LanguageServer();
  void receive(std::string_view message);  // puts it into the queue, or takes what it cancels out of it
  bool step();                  // answers one message, or does some milliseconds of work; false: nothing to do
  double wait_seconds() const;  // until there is something to do without a message
  bool has_ended() const;
  std::vector<std::string> take_output();  // messages to the client

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace slope::api::tools

#ifndef SLOPE_IMPLEMENTATION
namespace slope {
namespace tools = api::tools;
}
#endif
