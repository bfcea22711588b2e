// The extents that one session has mapped, shared by the session and its holds.
//
//   session ──┐
//   hold ─────┼──► SessionMemory ──► mapped extents
//   hold ─────┘                  └─► *unmapped = true when the last of them has let go
//
// The session writes (its thread only) and lets go when the node is lost; holds keep their pages
// mapped and read nothing here but `returns` and `fork`, which are thread-safe.
#ifndef PANDO_CLIENT_SESSION_MEMORY_H_
#define PANDO_CLIENT_SESSION_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>

#include "client/fork_guard.h"
#include "client/returns.h"
#include "transfer/memory/host_slab.h"
#include "transfer/memory/unique_fd.h"

namespace pando::client {

class SessionMemory {
 public:
  explicit SessionMemory(std::shared_ptr<const ForkGuard> fork);
  SessionMemory(const SessionMemory&) = delete;
  SessionMemory& operator=(const SessionMemory&) = delete;
  ~SessionMemory();

  // Empty, or what is wrong with what the node sent.
  std::string Map(uint32_t extent, const UniqueFd& fd);
  // Enters up to `bytes` more of what is mapped into this process's page table. False: all is.
  bool Prefault(size_t bytes);
  // The page's bytes; empty if they are not inside an extent that is mapped.
  std::span<std::byte> Page(uint32_t page, uint64_t page_bytes) const;
  size_t extents() const { return extents_.size(); }

  const std::shared_ptr<const ForkGuard>& fork() const { return fork_; }
  const std::shared_ptr<Returns>& returns() const { return returns_; }
  // Becomes true once nothing is mapped any more; outlives this.
  const std::shared_ptr<const std::atomic<bool>>& unmapped() const { return unmapped_view_; }

 private:
  const std::shared_ptr<const ForkGuard> fork_;
  const std::shared_ptr<Returns> returns_;
  const std::shared_ptr<std::atomic<bool>> unmapped_ = std::make_shared<std::atomic<bool>>(false);
  const std::shared_ptr<const std::atomic<bool>> unmapped_view_ = unmapped_;
  std::unordered_map<uint32_t, MappedExtent> extents_;
  std::deque<std::span<std::byte>> untouched_;  // of extents_
};

}  // namespace pando::client

#endif  // PANDO_CLIENT_SESSION_MEMORY_H_
