// Gives equal byte strings below equal parents one id, and forgets those that nobody uses.
//
//   Intern(kNoNode, "corpus") = 1     Intern(1, "tenant/a") = 2     Intern(1, "tenant/b") = 3
//
// So a path of strings is one number, and two paths are the same exactly if their numbers are. Each
// Intern and AddRef is undone by one Release; an entry keeps its parent alive. Ids of entries that
// went are used again. No exception. Threads: owner thread only.
#ifndef PANDO_RADIX_POOL_INTERNER_H_
#define PANDO_RADIX_POOL_INTERNER_H_

#include <cstdint>
#include <memory>
#include <string_view>

#include "radix/pool/chunked_array.h"
#include "radix/pool/linear_index.h"

namespace pando {

class Interner {
 public:
  // `seed` makes the table's hashes unpredictable to those who choose the strings.
  explicit Interner(uint64_t seed);
  ~Interner();
  Interner(const Interner&) = delete;
  Interner& operator=(const Interner&) = delete;

  // The entry's id, with one more reference; kNoNode: no memory, nothing was changed.
  uint32_t Intern(uint32_t parent, std::string_view bytes);
  // The same without a reference; kNoNode: there is no such entry.
  uint32_t Find(uint32_t parent, std::string_view bytes) const;
  void AddRef(uint32_t id) { ++entries_[id].refs; }
  void Release(uint32_t id);

  std::string_view bytes(uint32_t id) const { return {entries_[id].data, entries_[id].size}; }
  uint32_t parent(uint32_t id) const { return entries_[id].parent; }
  uint32_t refs(uint32_t id) const { return entries_[id].refs; }
  // Ids are below this.
  uint32_t ids() const { return used_; }
  uint64_t size() const { return index_.size(); }
  uint64_t memory() const { return entries_.bytes() + index_.bytes() + string_bytes_; }

 private:
  struct Entry {
    uint64_t hash = 0;
    char* data = nullptr;
    uint32_t size = 0;
    uint32_t parent = kNoNode;
    uint32_t refs = 0;
    uint32_t next = kNoNode;  // in its bucket, or of the free entries
  };
  using Entries = ChunkedArray<Entry, 8>;
  struct Access {
    Entries* entries;
    uint32_t& next(uint32_t id) const { return (*entries)[id].next; }
    uint64_t hash(uint32_t id) const { return (*entries)[id].hash; }
  };

  uint64_t HashOf(uint32_t parent, std::string_view bytes) const;

  const uint64_t seed_;
  Entries entries_;
  LinearIndex<Access> index_;
  uint32_t used_ = 0;
  uint32_t free_ = kNoNode;
  uint64_t string_bytes_ = 0;
};

}  // namespace pando

#endif  // PANDO_RADIX_POOL_INTERNER_H_
