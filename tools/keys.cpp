// Core.read_key, one key press, and Core.terminal_size: for programs that the user steers at a terminal.
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "stdlib/native/native.hpp"
#include "tools/tools.hpp"

namespace slope::api::detail {

namespace {

using stdlib::Call;

// The terminal gives each key as it is pressed, and does not show it. ^C stays an interrupt.
class SingleKeys {
 public:
  SingleKeys() : changed_(tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!changed_) return;
    termios now = before_;
    now.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    now.c_cc[VMIN] = 1;
    now.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &now);
  }
  ~SingleKeys() {
    if (changed_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  SingleKeys(const SingleKeys&) = delete;

 private:
  termios before_ = {};
  bool changed_;
};

bool more_waits(int milliseconds) {
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, milliseconds) > 0;
}

// read_key() → String: what the key sends (an arrow: "\e[A"); "" at the end of input, and after ^C. Only on a terminal:
// else an error.
bool read_key(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "read_key", args, count, result);
  if (!call.arity(0)) return false;
  if (!may_use(ctx, call.runtime.capabilities.input, "reading standard input", "input")) return false;
  if (!isatty(STDIN_FILENO)) return ctx.argument_error("read_key: standard input is no terminal");
  if (call.runtime.sink.out) call.runtime.sink.out({});  // what was printed is seen
  const SingleKeys keys;
  std::string key;
  char byte = 0;
  if (read(STDIN_FILENO, &byte, 1) != 1) return call.give(key);  // the end, or a signal
  key += byte;
  // The rest of a character, or of a sequence, comes at once.
  const auto lead = static_cast<unsigned char>(byte);
  std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  constexpr std::size_t longest = 8;
  constexpr int at_once = 20;  // milliseconds
  if (byte == '\033') length = longest;
  while (key.size() < length && more_waits(at_once)) {
    if (read(STDIN_FILENO, &byte, 1) != 1) break;
    key += byte;
    const bool ends = key[0] == '\033' && key.size() > 2 && ((byte >= 'A' && byte <= 'Z') || byte == '~');
    if (ends) break;
  }
  return call.give(key);
}

// terminal_size(rows::Bool) → Int: the rows, or columns, of the terminal that is standard output; 24 and 80 of others
bool terminal_size(Context& ctx, const RawValue* args, std::size_t count, RawValue& result) {
  Call call(ctx, "terminal_size", args, count, result);
  if (!call.arity(1)) return false;
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0;
  const bool rows = args[0].bits != 0;
  return call.give_int(!known ? (rows ? 24 : 80) : rows ? size.ws_row : size.ws_col);
}

const NativeInfo keys_natives[] = {{"read_key", read_key, effect_all, stdlib::returns_string},
                                   {"terminal_size", terminal_size, effect_all, stdlib::returns_int}};

}  // namespace

void define_key_natives(EngineState& engine) { stdlib::define_all(engine.runtime, keys_natives); }

}  // namespace slope::api::detail
