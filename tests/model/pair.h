// Pair: a PrefixCache and a NaiveCache that get the same operations; after each one everything that
// can be seen is compared and every invariant is checked.
//
//   Pair pair({.block_tokens = 2, .shards = 2, .collide = true});
//   pair.Store(prompt, ...);      any operation; false once the two have differed
//   pair.trouble()                what differed, and the operations up to it
#ifndef PANDO_TESTS_MODEL_PAIR_H_
#define PANDO_TESTS_MODEL_PAIR_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "radix/prefix_cache.h"
#include "tests/model/naive.h"

namespace pando::model {

// Owns what a Prompt borrows.
struct PromptText {
  std::vector<uint32_t> tokens;
  std::vector<std::pair<std::string, uint64_t>> segments;  // scope, end
  std::vector<std::pair<uint32_t, std::string>> extras;    // block, bytes
  std::vector<Segment> segment_views;
  std::vector<BlockExtra> extra_views;

  Prompt view() {
    segment_views.clear();
    extra_views.clear();
    for (const auto& [scope, end] : segments) segment_views.push_back({scope, TokenCount(end)});
    for (const auto& [block, bytes] : extras) extra_views.push_back({BlockCount(block), bytes});
    return {tokens, segment_views, extra_views};
  }
  std::string Text() const;
};

// What the cache has told of its blocks, by the rules of BlockListener.
class Told : public BlockListener {
 public:
  explicit Told(bool collide) : collide_(collide) {}

  void Appeared(std::optional<uint64_t> above, std::span<const uint64_t> keys) override;
  void Vanished(std::span<const uint64_t> keys) override;

  uint64_t blocks() const { return blocks_; }
  const std::string& trouble() const { return trouble_; }

 private:
  struct Block {
    std::optional<uint64_t> above;
    uint64_t below = 0;
  };

  const bool collide_;  // all keys are one: they are only counted
  uint64_t blocks_ = 0;
  std::map<uint64_t, Block> known_;
  std::string trouble_;
};

class Pair {
 public:
  struct Options {
    uint32_t block_tokens = 1;
    uint32_t shards = 1;
    uint32_t extents = 1;
    uint32_t extent_pages = 4;
    bool collide = false;
  };
  explicit Pair(const Options& options);

  void Find(PromptText prompt, uint32_t limit);
  void Pin(PromptText prompt, uint32_t limit);
  void Unpin(size_t pin);
  void Reserve(PromptText prompt, uint32_t to, uint64_t writer);
  // Copies and commits blocks of one shard: those of [from, to) of the reservation that `skip` does
  // not name (bit i: block from + i); the holds stay if `keep_holds`.
  void Write(size_t reservation, uint32_t shard, uint64_t skip, bool keep_holds);
  void Finish(size_t reservation);
  void Read(size_t pin, uint32_t shard);  // a hold on all blocks of the pinned path
  void Release(size_t hold);
  void DropBlock(bool of_pin, size_t path, uint32_t block);
  // The same for one of the hold's blocks, whatever has become of its path since.
  void DropHeld(size_t hold, size_t page);
  void Evict(uint32_t blocks);
  // Ends everything that is open; then nothing may be left but committed and free pages.
  void Close();

  // Whether each operation ends with the comparison and the check of all invariants.
  void set_comparing(bool comparing) { comparing_ = comparing; }

  size_t pins() const { return pins_.size(); }
  size_t reservations() const { return reservations_.size(); }
  size_t holds() const { return holds_.size(); }
  size_t pages(size_t hold) const { return holds_[hold].views.size(); }
  const std::string& trouble() const { return trouble_; }
  PrefixCache& cache() { return cache_; }

 private:
  struct PinPair {
    PathRef path;
    std::shared_ptr<NaivePath> naive;
  };
  struct ReservationPair {
    Reservation reservation;
    std::shared_ptr<NaivePath> naive;
  };
  struct HoldPair {
    PathRef path;
    std::vector<PageView> views;
    std::vector<BlockPtr> blocks;
    uint32_t shard = 0;
  };

  void Log(const std::string& line);
  void Expect(bool good, const std::string& what);
  void CommitAll(const ReservationPair& pair, uint32_t shard, const std::vector<PageView>& views);
  void Learn(const HoldPair& hold);
  std::optional<HoldPair> TakeHold(PathRef path, const NaivePath& naive, uint32_t from, uint32_t to,
                                   uint32_t shard);
  std::set<const NaivePath*> Survivors(const NaiveBlock& block) const;
  void Compare();

  const Options options_;
  Told told_;
  PrefixCache cache_;
  SpaceId space_;
  NaiveCache naive_;
  std::vector<PinPair> pins_;
  std::vector<ReservationPair> reservations_;
  std::vector<HoldPair> holds_;
  std::map<std::pair<uint32_t, uint32_t>, const NaiveBlock*> lives_;  // {page, generation}
  std::vector<BlockPtr> kept_;  // so that an address in lives_ is one block for ever
  bool comparing_ = true;
  std::string log_;
  std::string trouble_;
};

}  // namespace pando::model

#endif  // PANDO_TESTS_MODEL_PAIR_H_
