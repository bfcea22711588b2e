#include "radix/pool/interner.h"

#include <cstring>
#include <new>

#include "radix/base/check.h"
#include "radix/key/xxh3.h"

namespace pando {

Interner::Interner(uint64_t seed) : seed_(seed), index_(Access{&entries_}) {}

Interner::~Interner() {
  for (uint32_t id = 0; id < used_; ++id) delete[] entries_[id].data;
}

uint64_t Interner::HashOf(uint32_t parent, std::string_view bytes) const {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed_ + parent);
}

uint32_t Interner::Find(uint32_t parent, std::string_view text) const {
  return index_.Find(HashOf(parent, text), [&](uint32_t id) {
    return entries_[id].parent == parent && bytes(id) == text;
  });
}

uint32_t Interner::Intern(uint32_t parent, std::string_view text) {
  uint32_t id = Find(parent, text);
  if (id != kNoNode) {
    AddRef(id);
    return id;
  }
  if (free_ == kNoNode && !entries_.EnsureSize(uint64_t{used_} + 1)) return kNoNode;
  char* data = new (std::nothrow) char[text.size() + 1];
  if (data == nullptr) return kNoNode;
  std::memcpy(data, text.data(), text.size());
  data[text.size()] = '\0';
  if (free_ != kNoNode) {
    id = free_;
    free_ = entries_[id].next;
  } else {
    id = used_++;
  }
  entries_[id] = Entry{.hash = HashOf(parent, text),
                       .data = data,
                       .size = static_cast<uint32_t>(text.size()),
                       .parent = parent,
                       .refs = 1};
  if (parent != kNoNode) AddRef(parent);
  index_.Insert(id);
  string_bytes_ += text.size() + 1;
  return id;
}

void Interner::Release(uint32_t id) {
  while (id != kNoNode) {
    Entry& entry = entries_[id];
    PANDO_CHECK(entry.refs > 0) << "interned string " << id << " has no reference";
    if (--entry.refs > 0) return;
    index_.Remove(id);
    string_bytes_ -= entry.size + 1;
    delete[] entry.data;
    entry.data = nullptr;
    entry.next = free_;
    free_ = id;
    id = entry.parent;
  }
}

}  // namespace pando
