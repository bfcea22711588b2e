// Strong types for numbers: an id is not a count, and a count of tokens is not a count of blocks.
//
// Id<Tag, Rep>     compares, hashes and prints; no arithmetic.
// Count<Tag, Rep>  also adds and subtracts with its own kind.
//
// Construction and `value()` are explicit. Immutable values; any thread.
#ifndef PANDO_RADIX_BASE_STRONG_H_
#define PANDO_RADIX_BASE_STRONG_H_

#include <compare>
#include <cstdint>
#include <functional>
#include <ostream>
#include <utility>

namespace pando {

template <class Tag, class Rep>
class Id {
 public:
  using rep = Rep;
  constexpr Id() = default;
  explicit constexpr Id(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(Id, Id) = default;  // NOLINT(modernize-use-nullptr)
  template <class H>
  friend H AbslHashValue(H state, Id id) {
    return H::combine(std::move(state), id.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, Id id) { return out << +id.value_; }

 private:
  Rep value_ = 0;
};

template <class Tag, class Rep>
class Count {
 public:
  using rep = Rep;
  constexpr Count() = default;
  explicit constexpr Count(Rep value) : value_(value) {}
  constexpr Rep value() const { return value_; }
  friend constexpr auto operator<=>(Count, Count) = default;  // NOLINT(modernize-use-nullptr)
  constexpr Count& operator+=(Count other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Count& operator-=(Count other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Count operator+(Count a, Count b) { return a += b; }
  friend constexpr Count operator-(Count a, Count b) { return a -= b; }
  template <class H>
  friend H AbslHashValue(H state, Count count) {
    return H::combine(std::move(state), count.value_);
  }
  friend std::ostream& operator<<(std::ostream& out, Count count) { return out << +count.value_; }

 private:
  Rep value_ = 0;
};

}  // namespace pando

template <class Tag, class Rep>
struct std::hash<pando::Id<Tag, Rep>> {
  size_t operator()(pando::Id<Tag, Rep> id) const { return std::hash<Rep>()(id.value()); }
};

#endif  // PANDO_RADIX_BASE_STRONG_H_
