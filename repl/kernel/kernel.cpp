// The one file that includes xeus and zmq: they take longer to compile than the rest of the folder.
//
// SIGINT is for a thread of its own, which stops what the session runs. While a cell waits for input, the main thread is
// in a call of zmq: SIGUSR2 ends that call.
#include "repl/kernel/kernel.hpp"

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <array>
#include <cstdio>
#include <stdexcept>
#include <xeus/xhelper.hpp>
#include <xeus/xinput.hpp>
#include <xeus/xinterpreter.hpp>
#include <xeus/xkernel.hpp>
#include <xeus/xkernel_configuration.hpp>
#include <xeus/xserver_zmq.hpp>

#include "repl/completion.hpp"
#include "repl/inputs.hpp"
#include "repl/kernel/kernelspec.hpp"
#include "repl/kernel/positions.hpp"
#include "repl/kernel/session.hpp"
#include "repl/latex.hpp"
#include "repl/paint.hpp"
#include "repl/shell.hpp"

namespace slope::repl {

namespace {

using Json = nl::json;

constexpr int shown_rows = 30;  // of values
constexpr int shown_columns = 100;

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// Bytes that are no UTF-8 may be printed, but not sent.
std::string sendable(const std::string& text) {
  return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

Json bundle_of(const tools::Forms& forms) {
  Json bundle = Json::object();
  for (const auto& [mime, text] : forms)
    bundle[mime] = mime == "application/json" ? Json::parse(text, nullptr, false) : Json(sendable(text));
  return bundle;
}

// xeus' function of that purpose takes name and text in the other order than its header says.
Json error_reply(const std::string& name, const std::string& text, const std::vector<std::string>& trace = {}) {
  return {{"status", "error"}, {"ename", name}, {"evalue", text}, {"traceback", trace}};
}

const char* kind_name(tools::CompletionKind kind) {
  static constexpr std::array<const char*, 10> names = {"instance", "keyword", "module", "type", "function",
                                                        "property", "method",  "param",  "path", "magic"};
  return names[static_cast<std::size_t>(kind)];
}

class Interpreter final : public xeus::xinterpreter, public Listener {
 public:
  Interpreter() { xeus::register_interpreter(this); }

  void interrupt(pthread_t main_thread) {
    session_.interrupt();
    while (session_.is_reading()) {
      pthread_kill(main_thread, SIGUSR2);
      constexpr timespec pause = {0, 1'000'000};  // it may not have been in the call yet
      nanosleep(&pause, nullptr);
    }
  }

  void printed(Stream stream, const std::string& text) override {
    if (!silent_) publish_stream(stream == Stream::out ? "stdout" : "stderr", sendable(text));
  }
  void shown(const tools::Forms& forms) override {
    if (!silent_) display_data(bundle_of(forms), Json::object(), Json::object());
  }
  std::optional<std::string> read_line() override {
    if (!allows_input_) throw std::runtime_error("this notebook gives no input to the cell");
    try {
      return xeus::blocking_input_request("", false) + "\n";
    } catch (const zmq::error_t& problem) {
      if (problem.num() == EINTR) return std::nullopt;
      throw;
    }
  }

 private:
  void configure_impl() override {}

  Json execute_request_impl(int number, const std::string& code, bool silent, bool, Json expressions,
                            bool allows_input) override {
    silent_ = silent;
    allows_input_ = allows_input;
    Json reply;
    const std::string_view text = trimmed(code);
    if (text.starts_with('?')) {
      reply = answer_help(trimmed(text.substr(1)));
    } else if (text.starts_with(';')) {
      reply = run_command(std::string(trimmed(text.substr(1))));
    } else {
      reply = run_cell(number, code);
    }
    if (reply["status"] == "ok") reply["user_expressions"] = values_of(expressions);
    return reply;
  }

  Json answer_help(std::string_view name) {
    std::string answer;
    session_.use([&](Engine& engine) { answer = help_of_input(engine, name.empty() ? "?" : name); }, *this);
    // The notebook shows it beside the cells.
    const Json page = {{"source", "page"}, {"data", {{"text/plain", answer}}}, {"start", 0}};
    return xeus::create_successful_reply(Json::array({page}));
  }

  Json run_command(const std::string& command) {
    if (command == "cd" || command.starts_with("cd ")) {
      if (const std::string problem = run_shell(command); !problem.empty()) printed(Stream::err, problem + "\n");
      return xeus::create_successful_reply();
    }
    std::FILE* pipe = popen(("( " + command + "\n) 2>&1").c_str(), "r");
    std::array<char, 4096> piece;
    while (pipe) {
      const std::size_t count = std::fread(piece.data(), 1, piece.size(), pipe);
      if (count == 0) break;
      printed(Stream::out, std::string(piece.data(), count));
    }
    if (pipe) pclose(pipe);
    return xeus::create_successful_reply();
  }

  Json run_cell(int number, const std::string& code) {
    std::optional<Error> error;
    tools::Forms forms;
    session_.use(
        [&](Engine& engine) {
          Result<Value> result = engine.run(code, "In[" + std::to_string(number) + "]");
          if (!result.ok()) {
            error = result.error();
            return;
          }
          const Value& value = result.value();
          if (value.is_nothing() || silent_) return;
          (void)engine.set("ans", value);
          if (hides_value(code)) return;
          Result<tools::Forms> made = tools::forms(engine, value, shown_rows, shown_columns);
          if (made.ok())
            forms = std::move(made).value();
          else
            error = made.error();
        },
        *this);
    if (error && error->kind == ErrorKind::exit) {
      const Json payload = {{"source", "ask_exit"}, {"keepkernel", false}};
      return xeus::create_successful_reply(Json::array({payload}));
    }
    if (error) return complain(*error);
    if (!forms.empty()) publish_execution_result(number, bundle_of(forms), Json::object());
    return xeus::create_successful_reply();
  }

  Json complain(const Error& error) {
    const std::string name = error.kind == ErrorKind::interrupted ? "InterruptException"
                             : error.kind == ErrorKind::syntax    ? "SyntaxError"
                             : error.type.empty()                 ? "Error"
                                                                  : error.type;
    const std::vector<std::string> trace = lines_of(sendable(painted_error(error.message)));
    std::string summary = sendable(error.summary);
    for (const std::string& start : {std::string("ERROR: "), std::string("error: "), name})
      if (summary.starts_with(start)) summary.erase(0, start.size());
    if (summary.starts_with(":")) summary.erase(0, 1);
    summary = trimmed(summary);
    if (!silent_) publish_execution_error(name, summary, trace);
    return error_reply(name, summary, trace);
  }

  Json values_of(const Json& expressions) {
    Json values = Json::object();
    if (!expressions.is_object()) return values;
    for (const auto& [name, expression] : expressions.items()) {
      session_.use(
          [&, &name = name, &expression = expression](Engine& engine) {
            Result<Value> value = engine.run(expression.get<std::string>(), "<expression>");
            Result<tools::Forms> forms =
                value.ok() ? tools::forms(engine, value.value(), shown_rows, shown_columns) : value.error();
            values[name] =
                forms.ok() ? Json{{"status", "ok"}, {"data", bundle_of(forms.value())}, {"metadata", Json::object()}}
                           : error_reply(forms.error().type, sendable(forms.error().summary));
          },
          *this);
    }
    return values;
  }

  Json complete_request_impl(const std::string& code, int position) override {
    const std::size_t cursor = byte_of_character(code, static_cast<std::size_t>(std::max(position, 0)));
    Candidates found;
    ask([&](Engine& engine) { found = candidates_at(engine, code, cursor); });
    const auto begin = static_cast<int>(character_of_byte(code, found.begin));
    Json matches = Json::array(), types = Json::array();
    for (const tools::Completion& candidate : found.all) {
      if (candidate.kind == tools::CompletionKind::method) continue;  // to be read, not to be inserted
      const std::string text = found.is_latex ? latex_character(candidate.text) : candidate.text;
      matches.push_back(text);
      types.push_back({{"start", begin}, {"end", position}, {"text", text}, {"type", kind_name(candidate.kind)}});
    }
    return xeus::create_complete_reply(matches, begin, position, {{"_jupyter_types_experimental", types}});
  }

  Json inspect_request_impl(const std::string& code, int position, int) override {
    const std::size_t cursor = byte_of_character(code, static_cast<std::size_t>(std::max(position, 0)));
    std::string text;
    ask([&](Engine& engine) { text = tools::describe(engine, code, cursor); });
    if (text.empty()) return xeus::create_inspect_reply();
    return xeus::create_inspect_reply(true, {{"text/plain", sendable(text)}});
  }

  Json is_complete_request_impl(const std::string& code) override {
    Json reply;
    ask([&](Engine& engine) {
      if (engine.incomplete(code)) {
        const std::string_view text = code;
        const std::size_t line = text.rfind('\n');
        reply = xeus::create_is_complete_reply(
            "incomplete", indentation_after(engine, text.substr(line == std::string_view::npos ? 0 : line + 1)));
        return;
      }
      bool is_wrong = false;
      for (const tools::Problem& problem : tools::syntax_problems(code)) is_wrong |= !problem.is_warning;
      reply = xeus::create_is_complete_reply(is_wrong && !code.starts_with('?') && !code.starts_with(';') ? "invalid"
                                                                                                          : "complete");
    });
    return reply;
  }

  Json kernel_info_request_impl() override {
    const std::string version(slope::version());
    Json reply = xeus::create_info_reply("5.3", "slope", version);
    reply["status"] = "ok";
    reply["language_info"] = Json::parse(language_info().dump());
    reply["banner"] = "Slope " + version;
    reply["debugger"] = false;
    reply["help_links"] = Json::array();
    return reply;
  }

  void shutdown_request_impl() override {}

  // What is asked while no cell runs prints nothing.
  void ask(const std::function<void(Engine&)>& work) {
    silent_ = true;
    session_.use(work, *this);
  }

  Session session_;
  bool silent_ = false;
  bool allows_input_ = false;
};

struct Watch {
  Interpreter* interpreter;
  pthread_t main_thread;
};

void* watch_interrupts(void* given) {
  const auto* watch = static_cast<const Watch*>(given);
  sigset_t interrupts;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  for (int number = 0; sigwait(&interrupts, &number) == 0;) watch->interpreter->interrupt(watch->main_thread);
  return nullptr;
}

}  // namespace

void serve_notebook(const std::string& connection_file) {
  // Every thread that is made from here on leaves SIGINT to the one that waits for it.
  sigset_t interrupts;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupts, nullptr);
  struct sigaction wakes = {};
  wakes.sa_handler = [](int) {};
  sigaction(SIGUSR2, &wakes, nullptr);

  const xeus::xconfiguration configuration = xeus::load_configuration(connection_file);
  auto interpreter = std::make_unique<Interpreter>();
  Watch watch = {interpreter.get(), pthread_self()};
  pthread_t watcher;
  if (pthread_create(&watcher, nullptr, watch_interrupts, &watch) != 0)
    throw std::runtime_error("no thread can be made");
  xeus::xkernel kernel(configuration, xeus::get_user_name(), xeus::make_context<zmq::context_t>(),
                       std::move(interpreter), xeus::make_xserver_zmq);
  kernel.start();
  std::fflush(nullptr);
  std::_Exit(0);  // the engine's thread does not end
}

}  // namespace slope::repl
