// Every allocation of a scripted sequence fails once: the operation that meets it says so and has
// changed nothing, and the next try succeeds.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "radix/prefix_cache.h"

namespace {
int64_t fail_in = -1;  // allocations until one fails; negative: none
bool failed = false;

void* Allocate(size_t size, size_t align) {
  if (fail_in >= 0 && fail_in-- == 0) {
    failed = true;
    return nullptr;
  }
  return align <= alignof(std::max_align_t)
             ? std::malloc(size)
             : std::aligned_alloc(align, (size + align - 1) / align * align);
}
void* OrThrow(void* data) {
  if (data == nullptr) throw std::bad_alloc();
  return data;
}
}  // namespace

// NOLINTBEGIN
void* operator new(size_t n) {
  return OrThrow(Allocate(n, 1));
}
void* operator new[](size_t n) {
  return OrThrow(Allocate(n, 1));
}
void* operator new(size_t n, const std::nothrow_t&) noexcept {
  return Allocate(n, 1);
}
void* operator new[](size_t n, const std::nothrow_t&) noexcept {
  return Allocate(n, 1);
}
void* operator new(size_t n, std::align_val_t a) {
  return OrThrow(Allocate(n, size_t(a)));
}
void* operator new[](size_t n, std::align_val_t a) {
  return OrThrow(Allocate(n, size_t(a)));
}
void* operator new(size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return Allocate(n, size_t(a));
}
void* operator new[](size_t n, std::align_val_t a, const std::nothrow_t&) noexcept {
  return Allocate(n, size_t(a));
}
void operator delete(void* p) noexcept {
  std::free(p);
}
void operator delete[](void* p) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, size_t) noexcept {
  std::free(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void* p, size_t, std::align_val_t) noexcept {
  std::free(p);
}
// NOLINTEND

namespace pando {
namespace {

// Does `operation` with the n-th allocation failing; if that made it fail, checks that nothing
// changed and does it again without.
class Script {
 public:
  explicit Script(int64_t n)
      : left_(n), cache_({.key_secret = "", .space_share = 1.0, .extent_pages_max = 8}) {}

  template <class Operation>
  void Do(const Operation& operation) {
    const SpaceStats before = cache_.spaces() > 0 ? cache_.stats(SpaceId(0)) : SpaceStats{};
    const uint64_t unowned = cache_.extents_unowned();
    failed = false;
    fail_in = left_;
    const bool good = operation();
    left_ = fail_in;
    fail_in = -1;
    EXPECT_EQ(cache_.CheckInvariants(), "");
    hit_ = hit_ || failed;
    if (good) return;
    EXPECT_TRUE(failed) << "failed without a reason";
    const SpaceStats after = cache_.spaces() > 0 ? cache_.stats(SpaceId(0)) : SpaceStats{};
    EXPECT_EQ(after.blocks, before.blocks);
    EXPECT_EQ(after.runs, before.runs);
    EXPECT_EQ(after.pages.free, before.pages.free);
    EXPECT_EQ(after.evicted_blocks, before.evicted_blocks);
    EXPECT_EQ(cache_.extents_unowned(), unowned);
    EXPECT_TRUE(operation());
    EXPECT_EQ(cache_.CheckInvariants(), "");
  }

  void Store(const Prompt& prompt) {
    Reservation made;
    Do([&] {
      made = cache_.Reserve(SpaceId(0), prompt, BlockCount(1000), 1);
      return made.status != ReserveStatus::kNoMemory;
    });
    ASSERT_EQ(made.status, ReserveStatus::kOk);
    std::vector<PageView> views;
    Do([&] {
      const bool held = cache_.Hold(made.path, made.from, made.to, ShardId(0), &views);
      EXPECT_TRUE(held || views.empty());
      return held;
    });
    Do([&] {
      for (uint32_t i = 0; i < views.size(); ++i) {
        cache_.Commit(made.path, BlockCount(made.from.value() + i), ShardId(0), views[i].page, 1);
      }
      cache_.Release(views);
      cache_.Finish(made);
      return true;
    });
  }

  // True if some allocation failed on the way.
  bool Run() {
    Do([&] { return cache_.AddExtent(ExtentId(0)); });
    Do([&] { return cache_.AddExtent(ExtentId(300)); });  // another chunk of the page table
    const SpaceShape shape{
        .identity = std::string(100, 'i'), .block_tokens = 1, .page_bytes = Bytes(1), .shards = 1};
    Do([&] { return cache_.AddSpace(shape).has_value(); });
    const std::vector<uint32_t> a{1, 2, 3, 4}, b{1, 2, 9, 9, 9, 9, 9, 9},
        c{5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
    const std::vector<Segment> segments{{"corpus/manual", TokenCount(2)},
                                        {"tenant/b", TokenCount(8)}};
    const std::vector<BlockExtra> extras{{BlockCount(3), "digest"}};
    Store({a, {}, {}});
    Store({b, {}, {}});            // splits, and takes an extent
    Store({b, segments, extras});  // splits nothing, other scopes
    Store({c, {}, {}});            // evicts
    std::optional<PathRef> path;
    const std::vector<uint32_t> part{5, 6, 7};
    Do([&] {
      path = cache_.Pin(cache_.Find(SpaceId(0), {part, {}, {}}, BlockCount(9)));
      return path.has_value();
    });
    EXPECT_EQ(path->blocks, BlockCount(3));
    Do([&] {
      cache_.Unpin(*path);  // may join runs, if there is memory to do it
      cache_.Evict(SpaceId(0), BlockCount(3));
      return true;
    });
    return hit_;
  }

 private:
  int64_t left_;
  bool hit_ = false;
  PrefixCache cache_;
};

TEST(AllocationFailureTest, EveryOperationIsWholeOrNothing) {
  int64_t n = 0;
  while (Script(n).Run() && !testing::Test::HasFailure()) ++n;
  EXPECT_GT(n, 20);
}

}  // namespace
}  // namespace pando
