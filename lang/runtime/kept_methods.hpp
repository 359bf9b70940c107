// What keeps methods that definitions replaced: such a method is freed when no world that somebody may still run in has
// it (retired.cpp).
//
//   hold     a handle, plan, workspace or pullback of a host, which runs in the world that it was made in
//   keep     a script was told the number of a world, or has a value that refers to a method: for good
//   Pause    somebody has traces of errors, which refer to methods, in memory that nobody else sees
//
// Holds may end on any thread, and after the engine.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_set>
#include <vector>

namespace slope {

struct Method;
using World = std::uint64_t;

class KeptMethods {
  struct Counts {
    std::mutex mutex;
    std::map<World, std::size_t> of_world;
  };

 public:
  class Hold {
   public:
    Hold() = default;
    Hold(std::shared_ptr<Counts> counts, World world) : counts_(std::move(counts)), world_(world) {
      const std::lock_guard lock(counts_->mutex);
      ++counts_->of_world[world_];
    }
    Hold(Hold&& other) noexcept : counts_(std::move(other.counts_)), world_(other.world_) {}
    Hold& operator=(Hold&& other) noexcept {
      std::swap(counts_, other.counts_);
      std::swap(world_, other.world_);
      return *this;
    }
    ~Hold() {
      if (!counts_) return;
      const std::lock_guard lock(counts_->mutex);
      const auto held = counts_->of_world.find(world_);
      if (--held->second == 0) counts_->of_world.erase(held);
    }

   private:
    std::shared_ptr<Counts> counts_;
    World world_ = 0;
  };

  class Pause {
   public:
    explicit Pause(KeptMethods& kept) : kept_(kept) { ++kept_.paused_; }
    ~Pause() { --kept_.paused_; }
    Pause(const Pause&) = delete;

   private:
    KeptMethods& kept_;
  };

  Hold hold(World world) { return {counts_, world}; }
  void keep(World world) {
    const std::lock_guard lock(counts_->mutex);
    counts_->of_world.try_emplace(world, 1);
  }
  void keep(const Method& method) { methods_.insert(&method); }

  bool is_paused() const { return paused_ != 0; }
  bool is_kept(const Method* method) const { return methods_.contains(method); }
  void add_worlds(std::vector<World>& worlds) const {
    const std::lock_guard lock(counts_->mutex);
    for (const auto& [world, count] : counts_->of_world) worlds.push_back(world);
  }
  // Methods of worlds up to this one have been freed: who asks for such a world that is not held finds it incomplete.
  World freed_until = 0;
  bool is_whole(World world) const {
    const std::lock_guard lock(counts_->mutex);
    return world > freed_until || counts_->of_world.contains(world);
  }

 private:
  std::shared_ptr<Counts> counts_ = std::make_shared<Counts>();
  std::unordered_set<const Method*> methods_;
  std::size_t paused_ = 0;
};

}  // namespace slope
