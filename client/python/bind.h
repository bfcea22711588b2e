// The parts of the module _pando, and what they share. Errors of use (a wrong type, two threads at
// one client) are Python exceptions; all else is a value, as in client/client.h.
#ifndef PANDO_CLIENT_PYTHON_BIND_H_
#define PANDO_CLIENT_PYTHON_BIND_H_

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <vector>

#include "client/client.h"

namespace pando::python {

// A client with a guard: it is used by one thread at a time, also while the interpreter's lock is
// not held.
class SharedClient {
 public:
  explicit SharedClient(client::Options options)
      : client_(client::Client::Create(std::move(options))) {}

  class Use {
   public:
    explicit Use(SharedClient* shared) : shared_(shared) {
      if (shared_->busy_.exchange(true, std::memory_order_acquire)) {
        throw std::runtime_error("this client is in use by another thread: give each its own");
      }
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { shared_->busy_.store(false, std::memory_order_release); }
    client::Client* operator->() const { return get(); }
    client::Client* get() const {
      if (!shared_->client_) throw std::runtime_error("this client is closed");
      return shared_->client_.get();
    }
    void Close() const { shared_->client_.reset(); }

   private:
    SharedClient* shared_;
  };

 private:
  std::unique_ptr<client::Client> client_;
  std::atomic<bool> busy_ = false;
};

// A list of ints, or a buffer of C-contiguous 32-bit ones.
std::vector<uint32_t> ToTokens(nanobind::handle tokens);

void BindCalls(nanobind::module_* module, nanobind::class_<SharedClient>* client);
void BindCopy(nanobind::module_* module, nanobind::class_<SharedClient>* client);

}  // namespace pando::python

#endif  // PANDO_CLIENT_PYTHON_BIND_H_
