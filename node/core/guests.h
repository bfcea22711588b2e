// Guests: the nodes that have said hello to this one, and so may subscribe and ask for grants.
//
// A node is one guest, by its name: a new life of it (another boot id) takes the place of the old
// one, which is over with all that it was given. (While the old one still listens, the router lets
// nobody take its place.) Beyond limits::kGuests the one that was silent for
// longest has to say hello again. Owner thread only.
#ifndef PANDO_NODE_CORE_GUESTS_H_
#define PANDO_NODE_CORE_GUESTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "node/core/context.h"
#include "node/core/peer_messages.h"

namespace pando {

class Guests {
 public:
  explicit Guests(CoreContext* context) : context_(context) {}

  // Whose place a guest of this name and boot takes, if anybody's: that one is over.
  std::optional<BootId> Enter(const std::string& name, BootId boot);
  // The life of the node of this name that is a guest; BootId(): none.
  BootId Named(const std::string& name) const;
  // False: no such guest.
  bool Leave(BootId boot);
  // Whether it may ask; it is heard of now.
  bool Heard(BootId boot);
  uint64_t count() const { return guests_.size(); }

 private:
  struct Guest {
    std::string name;
    Nanos heard = 0;
  };

  CoreContext* context_;
  std::map<BootId, Guest> guests_;
  std::map<std::string, BootId> by_name_;
};

}  // namespace pando

#endif  // PANDO_NODE_CORE_GUESTS_H_
