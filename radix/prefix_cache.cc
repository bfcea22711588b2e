#include "radix/prefix_cache.h"

#include "radix/cache/cache.h"

namespace pando {

struct PrefixCache::Impl {
  explicit Impl(const Options& options) : cache(options) {}
  Cache cache;
};

PrefixCache::PrefixCache(const Options& options) : impl_(std::make_unique<Impl>(options)) {}

PrefixCache::~PrefixCache() = default;

void PrefixCache::SetListener(BlockListener* listener) {
  impl_->cache.SetListener(listener);
}

void PrefixCache::set_now(Nanos now) {
  impl_->cache.set_now(now);
}

std::optional<SpaceId> PrefixCache::AddSpace(const SpaceShape& shape) {
  return impl_->cache.AddSpace(shape);
}

const SpaceShape& PrefixCache::shape(SpaceId space) const {
  return impl_->cache.shape(space);
}

bool PrefixCache::AddExtent(ExtentId extent) {
  return impl_->cache.pages().AddExtent(extent);
}

uint64_t PrefixCache::ReleaseEmptyExtents(SpaceId space) {
  return impl_->cache.pages().ReleaseEmpty(space);
}

uint64_t PrefixCache::extents_unowned() const {
  return impl_->cache.pages().extents_unowned();
}

Match PrefixCache::Find(SpaceId space, const Prompt& prompt, BlockCount limit) const {
  return impl_->cache.Find(space, prompt, limit);
}

std::optional<uint64_t> PrefixCache::ToldKey(const Match& match) const {
  return impl_->cache.ToldKey(match);
}

std::optional<PathRef> PrefixCache::Pin(const Match& match) {
  return impl_->cache.Pin(match);
}

void PrefixCache::Unpin(PathRef path) {
  impl_->cache.Unpin(path);
}

Reservation PrefixCache::Reserve(SpaceId space, const Prompt& prompt, BlockCount to,
                                 uint64_t writer, BlockCount most) {
  return impl_->cache.Reserve(space, prompt, to, writer, most);
}

void PrefixCache::Finish(const Reservation& reservation) {
  impl_->cache.Finish(reservation);
}

void PrefixCache::AppendKeys(const Match& match, const Prompt& prompt, BlockCount to,
                             std::vector<uint64_t>* lows) const {
  impl_->cache.AppendKeys(match, prompt, to, lows);
}

bool PrefixCache::Hold(PathRef path, BlockCount from, BlockCount to, ShardId shard,
                       std::vector<PageView>* pages) {
  return impl_->cache.Hold(path, from, to, shard, pages);
}

void PrefixCache::Release(std::span<const PageView> pages) {
  for (const PageView& view : pages) impl_->cache.pages().Release(view.page);
}

bool PrefixCache::Commit(PathRef path, BlockCount block, ShardId shard, PageRef page,
                         uint64_t checksum) {
  const PageView view{.page = page, .checksum = 0};
  return impl_->cache.Commit(path, block, shard, {&view, 1}, {&checksum, 1}) == BlockCount(1);
}

BlockCount PrefixCache::Commit(PathRef path, BlockCount from, ShardId shard,
                               std::span<const PageView> pages,
                               std::span<const uint64_t> checksums) {
  return impl_->cache.Commit(path, from, shard, pages, checksums);
}

uint64_t PrefixCache::PagesToWrite(const Reservation& reservation) const {
  return impl_->cache.PagesToWrite(reservation);
}

bool PrefixCache::Drop(PathRef path, BlockCount block, ShardId shard, PageRef page) {
  return impl_->cache.Drop(path, block, shard, page);
}

bool PrefixCache::Committed(PageRef page) const {
  return impl_->cache.Committed(page);
}

bool PrefixCache::InBlock(PageRef page) const {
  return impl_->cache.InBlock(page);
}

BlockCount PrefixCache::Evict(SpaceId space, BlockCount blocks) {
  return impl_->cache.Evict(space, blocks);
}

SpaceStats PrefixCache::stats(SpaceId space) const {
  return impl_->cache.stats(space);
}

uint32_t PrefixCache::spaces() const {
  return impl_->cache.spaces();
}

void PrefixCache::VisitRuns(SpaceId space, uint64_t limit,
                            const std::function<void(const RunInfo&)>& visit) const {
  impl_->cache.VisitRuns(space, limit, visit);
}

Bytes PrefixCache::memory() const {
  return impl_->cache.memory();
}

std::string PrefixCache::CheckInvariants() const {
  return impl_->cache.CheckInvariants();
}

}  // namespace pando
