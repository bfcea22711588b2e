// PANDO_CHECK: an invariant of our own that does not hold stops the process, always, with the
// values.
//
//   PANDO_CHECK(free + used == total) << "free " << free << " used " << used << " total " << total;
//
// For broken invariants only. A miss, a full pool or a wrong message from outside is a value or a
// Status, never a check. The client library does not use it: there the session ends, not the
// engine.
//
// Thread-safe.
#ifndef PANDO_RADIX_BASE_CHECK_H_
#define PANDO_RADIX_BASE_CHECK_H_

#include <sstream>

namespace pando::internal {

// Collects the message of one failed check; its destructor prints it and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, const char* condition);
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;
  [[noreturn]] ~CheckFailure();

  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Gives both branches of the conditional below the type void.
struct Voidify {
  void operator&(std::ostream&) const {}
};

}  // namespace pando::internal

// The stream comes after it, so it cannot stand in parentheses.
#define PANDO_CHECK(condition)                                                  \
  (__builtin_expect(!!(condition), 1))                                          \
      ? (void)0                                                                 \
      : ::pando::internal::Voidify() & /* NOLINT(bugprone-macro-parentheses) */ \
            ::pando::internal::CheckFailure(__FILE__, __LINE__, #condition).stream()

#endif  // PANDO_RADIX_BASE_CHECK_H_
