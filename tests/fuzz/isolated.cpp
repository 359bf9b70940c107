#include "tests/fuzz/isolated.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <thread>

namespace slope::test {

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool has_shadow_memory = true;
#else
constexpr bool has_shadow_memory = false;
#endif

void limit_process(const ProcessLimits& limits) {
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  if (limits.address_space == 0 || has_shadow_memory) return;
  const rlimit bytes = {limits.address_space, limits.address_space};
  setrlimit(RLIMIT_AS, &bytes);
}

}  // namespace

void Page::begin(std::uint64_t number, std::string_view what) {
  step = number;
  ++attempts;
  const std::size_t size = std::min(what.size(), sizeof(text) - 1);
  std::memcpy(text, what.data(), size);
  text[size] = 0;
}

std::string Ending::text() const {
  if (late) return "late";
  if (signal != 0) return "ended by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
  return "exit status " + std::to_string(status);
}

Page& shared_page() {
  static Page* page = [] {
    void* memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("mmap");
      std::abort();
    }
    return new (memory) Page;
  }();
  return *page;
}

Ending isolated(const ProcessLimits& limits, const std::function<void(Page&)>& body) {
  Page& page = shared_page();
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) {
    std::perror("fork");
    std::abort();
  }
  if (child == 0) {
    limit_process(limits);
    body(page);
    std::fflush(nullptr);
    _exit(0);
  }
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(limits.seconds));
  Ending ending;
  int status = 0;
  rusage usage{};
  auto pause = std::chrono::microseconds(200);
  while (wait4(child, &status, WNOHANG, &usage) == 0) {
    if (Clock::now() > end && !ending.late) {
      ending.late = true;
      kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::microseconds(20'000));
  }
  if (WIFSIGNALED(status)) ending.signal = WTERMSIG(status);
  if (WIFEXITED(status)) ending.status = WEXITSTATUS(status);
  ending.peak_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  return ending;
}

}  // namespace slope::test
