// Two network namespaces as two hosts, `a` at 10.77.0.1 and `b` at 10.77.0.2, joined by a cable
// that can be cut and slowed. They are gone with the object; the processes in them must be before.
#ifndef PANDO_TESTS_E2E_TRANSFER_NAMESPACES_H_
#define PANDO_TESTS_E2E_TRANSFER_NAMESPACES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace pando::e2e {

class Namespaces {
 public:
  Namespaces();
  ~Namespaces();
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  // What is missing to have them, for a test's summary; "": nothing.
  const std::string& missing() const { return missing_; }

  std::vector<std::string> In(char host) const;  // a command that runs the rest there
  static std::string AddressOf(char host) { return host == 'a' ? "10.77.0.1" : "10.77.0.2"; }

  void Link(bool up);  // b's end of the cable
  // What `host` sends passes at this rate through a queue of so many bytes: a long one is delay, a
  // short one is loss.
  void Slow(char host, const std::string& rate, uint32_t queue_bytes);
  void Unslow(char host);
  uint64_t Dropped(char host);  // packets, by the queue, since Slow

 private:
  void AwaitUp();
  std::string NameOf(char host) const { return name_ + host; }

  const std::string name_;
  std::string missing_;
};

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_TRANSFER_NAMESPACES_H_
