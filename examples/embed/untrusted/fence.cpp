#include "untrusted/fence.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace untrusted {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t architecture = AUDIT_ARCH_AARCH64;
#else
#error "add the name of this architecture from linux/audit.h"
#endif

constexpr std::uint32_t offset_of_argument(int index) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args)) + 8 * static_cast<std::uint32_t>(index);
}

// The rules as a program for the kernel: each of them loads the call's number and goes on to the next when it is
// another's.
class Rules {
 public:
  Rules() {
    // A process of 32 bits would number its calls in another way.
    load(offsetof(seccomp_data, arch));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, architecture, 1, 0));
    add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
  }

  void allow(long number) { when(number, SECCOMP_RET_ALLOW); }
  void fail(long number, int error) { when(number, SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error)); }

  // When the argument has none of the bits.
  void allow_without(long number, int argument, std::uint32_t bits) {
    only_if(number, argument, BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits), 0);
  }
  // When it has all of them.
  void allow_with(long number, int argument, std::uint32_t bits) {
    only_if(number, argument, BPF_STMT(BPF_ALU | BPF_AND | BPF_K, bits), bits);
  }

  bool install() {
    add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS));
    const sock_fprog program{static_cast<unsigned short>(rules_.size()), rules_.data()};
    // For all threads of the process.
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
  }

 private:
  void add(const sock_filter& rule) { rules_.push_back(rule); }
  void load(std::size_t offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset))); }

  void when(long number, std::uint32_t answer) {
    load(offsetof(seccomp_data, nr));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 1));
    add(BPF_STMT(BPF_RET | BPF_K, answer));
  }
  void only_if(long number, int argument, const sock_filter& masks, std::uint32_t expected) {
    load(offsetof(seccomp_data, nr));
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(number), 0, 4));
    load(offset_of_argument(argument));
    add(masks);
    add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, expected, 0, 1));
    add(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }

  std::vector<sock_filter> rules_;
};

bool set_limit(int what, std::size_t limit) {
  const rlimit both{limit, limit};
  return setrlimit(what, &both) == 0;
}

}  // namespace

bool fence_process(const ProcessLimits& limits) {
  if (!set_limit(RLIMIT_AS, limits.address_space) || !set_limit(RLIMIT_CPU, limits.seconds) ||
      !set_limit(RLIMIT_FSIZE, 0) || !set_limit(RLIMIT_CORE, 0))
    return false;
  // Without this, a program with other rights could be started under rules that confuse it.
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) return false;

  Rules rules;
  for (const long number : {SYS_read,           SYS_write,         SYS_writev,
                            SYS_close,          SYS_exit,          SYS_exit_group,
                            SYS_futex,          SYS_munmap,        SYS_brk,
                            SYS_madvise,        SYS_clock_gettime, SYS_clock_nanosleep,
                            SYS_nanosleep,      SYS_gettimeofday,  SYS_getpid,
                            SYS_gettid,         SYS_sched_yield,   SYS_sched_getaffinity,
                            SYS_getrandom,      SYS_rt_sigreturn,  SYS_rt_sigprocmask,
                            SYS_rt_sigaction,   SYS_sigaltstack,   SYS_set_robust_list,
                            SYS_restart_syscall})
    rules.allow(number);
#ifdef SYS_rseq
  rules.allow(SYS_rseq);
#endif
  // Memory, but none that can be run.
  rules.allow_without(SYS_mmap, 2, PROT_EXEC);
  rules.allow_without(SYS_mprotect, 2, PROT_EXEC);
  rules.allow(SYS_mremap);
  // Threads, but no processes. The flags of clone3 lie in memory, where a rule cannot look: the C library then uses clone.
#ifdef SYS_clone3
  rules.fail(SYS_clone3, ENOSYS);
#endif
  rules.allow_with(SYS_clone, 0, CLONE_THREAD | CLONE_VM);
  return rules.install();
}

}  // namespace untrusted
