// Functions that code ahead of time calls, as LLVM IR: they become part of the object where they are used, and nothing
// else does. The record of a call: the next free byte at 0, how many bytes are left at 8, the status at 16.
#include <llvm/AsmParser/Parser.h>
#include <llvm/Support/SourceMgr.h>

#include <cassert>

#include "codegen/ahead_code.hpp"

namespace slope::codegen {

namespace {

constexpr const char* text = R"(
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare i64 @llvm.umax.i64(i64, i64)
declare void @dgemv_(ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture, ptr nocapture readonly)
declare void @dgemm_(ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture readonly, ptr nocapture, ptr nocapture readonly)
declare i64 @llvm.umin.i64(i64, i64)

; `status`: the kind of an error. The line comes on the way out.
define internal void @slope.raise(ptr %call, i32 %status) alwaysinline nounwind {
  %at = getelementptr inbounds i8, ptr %call, i64 16
  store i32 %status, ptr %at
  ret void
}

; The innermost line stays.
define internal void @slope.note(ptr %call, ptr %line) alwaysinline nounwind {
  %at = getelementptr inbounds i8, ptr %call, i64 16
  %status = load i32, ptr %at
  %known = and i32 %status, 16777215
  %none = icmp eq i32 %known, 0
  %word = ptrtoint ptr %line to i64
  %short = trunc i64 %word to i32
  %with = or i32 %status, %short
  %new = select i1 %none, i32 %with, i32 %status
  store i32 %new, ptr %at
  ret void
}

; Null: too little was lent. `bytes` is a multiple of 16.
define internal noalias ptr @slope.take(ptr nocapture %call, i64 %bytes) noinline nounwind memory(argmem: readwrite) {
  %at = getelementptr inbounds i8, ptr %call, i64 8
  %left = load i64, ptr %at
  %short = icmp ugt i64 %bytes, %left
  br i1 %short, label %no, label %yes
no:
  %status = getelementptr inbounds i8, ptr %call, i64 16
  store i32 134217728, ptr %status
  ret ptr null
yes:
  %rest = sub i64 %left, %bytes
  store i64 %rest, ptr %at
  %next = load ptr, ptr %call
  %after = getelementptr inbounds i8, ptr %next, i64 %bytes
  store ptr %after, ptr %call
  ret ptr %next
}

; A tape: how many rows fit at 0, its columns' addresses at `columns`; `sizes`: how many columns, then the bytes of an
; element of each. False: too little was lent.
define internal i1 @slope.grow_tape(ptr %call, ptr %tape, i64 %rows, ptr %columns, ptr %sizes) noinline nounwind {
entry:
  %old = load i64, ptr %tape
  %twice = shl i64 %old, 1
  %wanted = call i64 @llvm.umax.i64(i64 %twice, i64 %rows)
  %new = call i64 @llvm.umin.i64(i64 %wanted, i64 1099511627776)
  %count = load i64, ptr %sizes
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %j, %moved ]
  %done = icmp uge i64 %i, %count
  br i1 %done, label %end, label %body
body:
  %j = add i64 %i, 1
  %at = getelementptr i64, ptr %sizes, i64 %j
  %size = load i64, ptr %at
  %bytes = mul i64 %new, %size
  %more = add i64 %bytes, 15
  %round = and i64 %more, -16
  %memory = call ptr @slope.take(ptr %call, i64 %round)
  %none = icmp eq ptr %memory, null
  br i1 %none, label %fail, label %moved
moved:
  %place = getelementptr ptr, ptr %columns, i64 %i
  %from = load ptr, ptr %place
  %used = mul i64 %old, %size
  call void @llvm.memcpy.p0.p0.i64(ptr %memory, ptr %from, i64 %used, i1 false)
  store ptr %memory, ptr %place
  br label %head
end:
  store i64 %new, ptr %tape
  ret i1 true
fail:
  ret i1 false
}

; y = beta y + alpha A x, or with the transpose of A, of m rows and n columns; sizes fit into 32 bits.
define internal void @slope.gemv(i1 %transposed, i64 %m, i64 %n, double %alpha, ptr %a, ptr %x, double %beta, ptr %y) noinline nounwind {
entry:
  %text = alloca i8
  %rows = alloca i32
  %columns = alloca i32
  %leading = alloca i32
  %one = alloca i32
  %factor = alloca double
  %scale = alloca double
  %letter = select i1 %transposed, i8 84, i8 78
  store i8 %letter, ptr %text
  %m32 = trunc i64 %m to i32
  %n32 = trunc i64 %n to i32
  %least = call i64 @llvm.umax.i64(i64 %m, i64 1)
  %least32 = trunc i64 %least to i32
  store i32 %m32, ptr %rows
  store i32 %n32, ptr %columns
  store i32 %least32, ptr %leading
  store i32 1, ptr %one
  store double %alpha, ptr %factor
  store double %beta, ptr %scale
  %product = mul i64 %m, %n
  %empty = icmp eq i64 %product, 0
  br i1 %empty, label %scaling, label %call
call:
  call void @dgemv_(ptr %text, ptr %rows, ptr %columns, ptr %factor, ptr %a, ptr %leading, ptr %x, ptr %one, ptr %scale, ptr %y, ptr %one)
  ret void
scaling:
  %length = select i1 %transposed, i64 %n, i64 %m
  %clears = fcmp oeq double %beta, 0.0
  br label %head
head:
  %i = phi i64 [ 0, %scaling ], [ %j, %body ]
  %done = icmp uge i64 %i, %length
  br i1 %done, label %end, label %body
body:
  %at = getelementptr double, ptr %y, i64 %i
  %old = load double, ptr %at
  %scaled = fmul double %old, %beta
  %new = select i1 %clears, double 0.0, double %scaled
  store double %new, ptr %at
  %j = add i64 %i, 1
  br label %head
end:
  ret void
}

; C = beta C + alpha A B, or with transposes: C of m rows and n columns, A and B of so many rows as they have in memory.
define internal void @slope.gemm(i1 %ta, i1 %tb, i64 %m, i64 %n, i64 %k, double %alpha, ptr %a, i64 %a_rows, ptr %b, i64 %b_rows, double %beta, ptr %c) noinline nounwind {
  %text_a = alloca i8
  %text_b = alloca i8
  %rows = alloca i32
  %columns = alloca i32
  %inner = alloca i32
  %lead_a = alloca i32
  %lead_b = alloca i32
  %lead_c = alloca i32
  %factor = alloca double
  %scale = alloca double
  %letter_a = select i1 %ta, i8 84, i8 78
  %letter_b = select i1 %tb, i8 84, i8 78
  store i8 %letter_a, ptr %text_a
  store i8 %letter_b, ptr %text_b
  %m32 = trunc i64 %m to i32
  %n32 = trunc i64 %n to i32
  %k32 = trunc i64 %k to i32
  %la = call i64 @llvm.umax.i64(i64 %a_rows, i64 1)
  %lb = call i64 @llvm.umax.i64(i64 %b_rows, i64 1)
  %lc = call i64 @llvm.umax.i64(i64 %m, i64 1)
  %la32 = trunc i64 %la to i32
  %lb32 = trunc i64 %lb to i32
  %lc32 = trunc i64 %lc to i32
  store i32 %m32, ptr %rows
  store i32 %n32, ptr %columns
  store i32 %k32, ptr %inner
  store i32 %la32, ptr %lead_a
  store i32 %lb32, ptr %lead_b
  store i32 %lc32, ptr %lead_c
  store double %alpha, ptr %factor
  store double %beta, ptr %scale
  call void @dgemm_(ptr %text_a, ptr %text_b, ptr %rows, ptr %columns, ptr %inner, ptr %factor, ptr %a, ptr %lead_a, ptr %b, ptr %lead_b, ptr %scale, ptr %c, ptr %lead_c)
  ret void
}
)";

}  // namespace

void Ahead::add_runtime(llvm::Module& module) {
  llvm::SMDiagnostic problem;
  const bool failed = llvm::parseAssemblyInto(llvm::MemoryBufferRef(text, "runtime"), &module, nullptr, problem);
  assert(!failed);
  static_cast<void>(failed);
}

}  // namespace slope::codegen
