#include "tests/model/pair.h"

namespace pando::model {
namespace {

std::string Number(uint64_t value) {
  return std::to_string(value);
}

}  // namespace

std::string PromptText::Text() const {
  std::string text = "{";
  for (const uint32_t token : tokens) text += Number(token) + " ";
  for (const auto& [scope, end] : segments) text += "'" + scope + "'<" + Number(end) + " ";
  for (const auto& [block, bytes] : extras) text += "+" + Number(block) + ":" + bytes + " ";
  return text + "}";
}

void Told::Appeared(std::optional<uint64_t> above, std::span<const uint64_t> keys) {
  blocks_ += keys.size();
  if (collide_) return;
  for (const uint64_t key : keys) {
    if (above && known_.count(*above) == 0) trouble_ = "told below a block that is not told";
    if (above) ++known_[*above].below;
    if (!known_.emplace(key, Block{above, 0}).second) trouble_ = "told twice";
    above = key;
  }
}

void Told::Vanished(std::span<const uint64_t> keys) {
  blocks_ -= keys.size();
  if (collide_) return;
  for (const uint64_t key : keys) {
    const auto block = known_.find(key);
    if (block == known_.end() || block->second.below > 0) {
      trouble_ = "told as gone, and never told or not a leaf";
      return;
    }
    if (block->second.above) --known_[*block->second.above].below;
    known_.erase(block);
  }
}

Pair::Pair(const Options& options)
    : options_(options),
      told_(options.collide),
      cache_({.key_secret = "",
              .space_share = 1.0,
              .collide = options.collide,
              .extent_pages_max = options.extent_pages}),
      naive_(options.block_tokens, options.shards, options.extents, options.extent_pages) {
  cache_.SetListener(&told_);
  for (uint32_t e = 0; e < options.extents; ++e) {
    Expect(cache_.AddExtent(ExtentId(e)), "AddExtent");
  }
  space_ = cache_
               .AddSpace({.identity = "model",
                          .block_tokens = options.block_tokens,
                          .page_bytes = Bytes(1),
                          .shards = options.shards})
               .value();
}

void Pair::Log(const std::string& line) {
  if (trouble_.empty()) log_ += "  " + line + "\n";
}

void Pair::Expect(bool good, const std::string& what) {
  if (!good && trouble_.empty()) trouble_ = what + ", after\n" + log_;
}

void Pair::Compare() {
  if (!trouble_.empty() || !comparing_) return;
  const std::string broken = cache_.CheckInvariants();
  Expect(broken.empty(), broken);
  const SpaceStats stats = cache_.stats(space_);
  const PageCounts a = stats.pages, b = naive_.Counts();
  const auto same = [this](const char* what, uint64_t real, uint64_t model) {
    Expect(real == model, std::string(what) + ": " + Number(real) + ", model " + Number(model));
  };
  same("blocks", stats.blocks, naive_.size());
  same("free", a.free, b.free);
  same("reserved", a.reserved, b.reserved);
  same("receiving", a.receiving, b.receiving);
  same("committed", a.committed, b.committed);
  same("held", a.held, b.held);
  same("quarantined", a.quarantined, b.quarantined);
  same("told", told_.blocks(), naive_.Visible());
  Expect(told_.trouble().empty(), told_.trouble());
  uint64_t writing = 0;
  for (const ReservationPair& pair : reservations_) {
    writing += cache_.PagesToWrite(pair.reservation);
  }
  same("pages of reservations", a.reserved + a.receiving, writing);
}

void Pair::Find(PromptText text, uint32_t limit) {
  Log("Find " + text.Text() + " limit " + Number(limit));
  const Prompt prompt = text.view();
  const Match match = cache_.Find(space_, prompt, BlockCount(limit));
  const NaiveCache::Found found = naive_.Find(prompt, limit);
  Expect(match.blocks.value() == found.blocks,
         "Find found " + Number(match.blocks.value()) + " blocks, model " + Number(found.blocks));
  Expect(match.stop == found.stop, "Find stopped for another reason");
  Compare();
}

void Pair::Pin(PromptText text, uint32_t limit) {
  Log("Pin " + text.Text() + " limit " + Number(limit));
  const Prompt prompt = text.view();
  const Match match = cache_.Find(space_, prompt, BlockCount(limit));
  Expect(match.blocks.value() == naive_.Find(prompt, limit).blocks, "Pin: another match");
  if (!trouble_.empty()) return;
  const std::optional<PathRef> path = cache_.Pin(match);
  Expect(path.has_value() && path->blocks == match.blocks, "Pin: another path");
  if (!trouble_.empty()) return;
  pins_.push_back({*path, naive_.Pin(prompt, match.blocks.value())});
  Compare();
}

void Pair::Unpin(size_t pin) {
  Log("Unpin #" + Number(pin));
  cache_.Unpin(pins_[pin].path);
  naive_.Unpin(pins_[pin].naive);
  pins_.erase(pins_.begin() + static_cast<std::ptrdiff_t>(pin));
  Compare();
}

void Pair::Reserve(PromptText text, uint32_t to, uint64_t writer) {
  Log("Reserve " + text.Text() + " to " + Number(to) + " writer " + Number(writer));
  const Prompt prompt = text.view();
  const Reservation reservation = cache_.Reserve(space_, prompt, BlockCount(to), writer);
  std::shared_ptr<NaivePath> path;
  const ReserveStatus status = naive_.Reserve(prompt, to, writer, &path);
  Expect(reservation.status == status, "Reserve: status " +
                                           Number(static_cast<uint64_t>(reservation.status)) +
                                           ", model " + Number(static_cast<uint64_t>(status)));
  if (!trouble_.empty()) return;
  if (status == ReserveStatus::kOk) {
    Expect(reservation.from.value() == path->from &&
               reservation.to.value() == path->blocks.size() &&
               reservation.path.blocks == reservation.to,
           "Reserve: other blocks");
    reservations_.push_back({reservation, path});
  }
  Compare();
}

// A page's life belongs to one block's life.
void Pair::Learn(const HoldPair& hold) {
  for (size_t i = 0; i < hold.views.size(); ++i) {
    const PageRef page = hold.views[i].page;
    const BlockPtr& block = hold.blocks[i];
    PageRef& known = block->pages[hold.shard];
    Expect(known == kNoPage || known == page, "a block's page changed");
    const auto life =
        lives_.emplace(std::pair(page.page.value(), page.generation.value()), block.get());
    Expect(life.second || (life.first->second == block.get() && known == page),
           "a page and generation were used twice");
    if (life.second) kept_.push_back(block);
    known = page;
  }
}

std::optional<Pair::HoldPair> Pair::TakeHold(PathRef path, const NaivePath& naive, uint32_t from,
                                             uint32_t to, uint32_t shard) {
  HoldPair hold;
  hold.path = path;
  hold.shard = shard;
  const bool real =
      cache_.Hold(path, BlockCount(from), BlockCount(to), ShardId(shard), &hold.views);
  // NaivePath is told of its end before anything is held.
  const bool model = naive_.Hold(naive, from, to, shard);
  Expect(real == model, "Hold: " + Number(real) + ", model " + Number(model));
  if (!trouble_.empty() || !real) return std::nullopt;
  Expect(hold.views.size() == to - from, "Hold: pages missing");
  hold.blocks.assign(naive.blocks.begin() + from, naive.blocks.begin() + to);
  Learn(hold);
  return hold;
}

// By the call that takes many pages, up to the first that is refused.
void Pair::CommitAll(const ReservationPair& pair, uint32_t shard,
                     const std::vector<PageView>& views) {
  const uint32_t from = pair.reservation.from.value();
  std::vector<uint64_t> checksums(views.size());
  for (uint32_t i = 0; i < views.size(); ++i) checksums[i] = 1000 + from + i;
  uint32_t model = 0;
  while (model < views.size() && naive_.Commit(*pair.naive, from + model, shard)) ++model;
  const BlockCount real =
      cache_.Commit(pair.reservation.path, pair.reservation.from, ShardId(shard), views, checksums);
  Expect(real.value() == model,
         "Commit of many: " + Number(real.value()) + ", model " + Number(model));
}

void Pair::Write(size_t index, uint32_t shard, uint64_t skip, bool keep_holds) {
  Log("Write #" + Number(index) + " shard " + Number(shard) + " skip " + Number(skip));
  const ReservationPair& pair = reservations_[index];
  const uint32_t from = pair.reservation.from.value(), to = pair.reservation.to.value();
  std::optional<HoldPair> hold = TakeHold(pair.reservation.path, *pair.naive, from, to, shard);
  Compare();
  if (!hold) return;
  if (skip == 0) CommitAll(pair, shard, hold->views);
  for (uint32_t i = 0; skip != 0 && i < hold->views.size(); ++i) {
    if (skip >> i & 1) continue;
    const bool real = cache_.Commit(pair.reservation.path, BlockCount(from + i), ShardId(shard),
                                    hold->views[i].page, 1000 + from + i);
    Expect(real == naive_.Commit(*pair.naive, from + i, shard), "Commit differs");
  }
  holds_.push_back(*std::move(hold));
  if (!keep_holds) Release(holds_.size() - 1);
  Compare();
}

void Pair::Finish(size_t index) {
  Log("Finish #" + Number(index));
  cache_.Finish(reservations_[index].reservation);
  naive_.Finish(reservations_[index].naive);
  reservations_.erase(reservations_.begin() + static_cast<std::ptrdiff_t>(index));
  Compare();
}

void Pair::Read(size_t index, uint32_t shard) {
  Log("Read #" + Number(index) + " shard " + Number(shard));
  const PinPair& pin = pins_[index];
  if (pin.path.blocks.value() == 0) return;
  std::optional<HoldPair> hold = TakeHold(pin.path, *pin.naive, 0, pin.path.blocks.value(), shard);
  if (hold) {
    for (size_t i = 0; i < hold->views.size(); ++i) {
      Expect(hold->views[i].checksum == 1000 + i, "a committed page has another checksum");
    }
    holds_.push_back(*std::move(hold));
  }
  Compare();
}

void Pair::Release(size_t index) {
  Log("Release #" + Number(index));
  cache_.Release(holds_[index].views);
  for (const BlockPtr& block : holds_[index].blocks) naive_.Release(block, holds_[index].shard);
  holds_.erase(holds_.begin() + static_cast<std::ptrdiff_t>(index));
  Compare();
}

// Paths through the block whose last run begins above it.
std::set<const NaivePath*> Pair::Survivors(const NaiveBlock& block) const {
  std::map<uint32_t, uint32_t> depths;
  cache_.VisitRuns(space_, UINT64_MAX,
                   [&depths](const RunInfo& run) { depths[run.run.value()] = run.depth_blocks; });
  std::set<const NaivePath*> survivors;
  const auto look = [&](PathRef path, const NaivePath& naive) {
    if (naive.alive && path.blocks.value() > 0 && depths[path.run.value()] < block.depth + 0u) {
      survivors.insert(&naive);
    }
  };
  for (const PinPair& pin : pins_) look(pin.path, *pin.naive);
  for (const ReservationPair& pair : reservations_) look(pair.reservation.path, *pair.naive);
  return survivors;
}

void Pair::DropBlock(bool of_pin, size_t index, uint32_t block) {
  Log(std::string("Drop ") + (of_pin ? "pin" : "reservation") + " #" + Number(index) + " block " +
      Number(block));
  const PathRef path = of_pin ? pins_[index].path : reservations_[index].reservation.path;
  const std::shared_ptr<NaivePath> naive = of_pin ? pins_[index].naive : reservations_[index].naive;
  std::optional<HoldPair> hold = TakeHold(path, *naive, block, block + 1, 0);
  if (!hold) return;
  holds_.push_back(*std::move(hold));
  DropHeld(holds_.size() - 1, 0);
  Release(holds_.size() - 1);
}

void Pair::DropHeld(size_t index, size_t page) {
  Log("Drop page " + Number(page) + " of hold #" + Number(index));
  const HoldPair& hold = holds_[index];
  const BlockPtr& target = hold.blocks[page];
  const BlockCount block(target->depth);
  const ShardId shard(hold.shard);
  const PageRef held = hold.views[page].page;
  PageRef stale = held;
  stale.generation = Generation(stale.generation.value() + 1);
  Expect(!cache_.Drop(hold.path, block, shard, stale), "Drop of a stale page");
  const bool alive = target->alive;
  const std::set<const NaivePath*> survivors = Survivors(*target);
  Expect(cache_.Drop(hold.path, block, shard, held) == alive,
         alive ? "Drop refused" : "Drop of what had gone");
  if (alive) naive_.Drop(target, survivors);
  Expect(!cache_.Drop(hold.path, block, shard, held), "Drop twice");
  Compare();
}

void Pair::Evict(uint32_t blocks) {
  Log("Evict " + Number(blocks));
  const uint32_t real = cache_.Evict(space_, BlockCount(blocks)).value();
  Expect(real == naive_.Evict(blocks), "Evict: another number");
  Compare();
}

void Pair::Close() {
  while (trouble_.empty() && !reservations_.empty()) Finish(0);
  while (trouble_.empty() && !pins_.empty()) Unpin(0);
  while (trouble_.empty() && !holds_.empty()) Release(0);
  if (!trouble_.empty()) return;
  const SpaceStats stats = cache_.stats(space_);
  Evict(static_cast<uint32_t>(stats.blocks));
  const SpaceStats empty = cache_.stats(space_);
  Expect(empty.blocks == 0 && empty.runs == 0, "blocks are left");
  const uint64_t owned = empty.extents * options_.extent_pages;
  Expect(empty.pages.free == owned, "pages are left");
}

}  // namespace pando::model
