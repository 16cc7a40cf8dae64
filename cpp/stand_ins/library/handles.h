#pragma once

#include <set>

namespace warpstack::library {

/// What the program has created and not destroyed. The pointer is its handle.
template <typename Context>
class Handles {
 public:
  static Context* add() { return *all().insert(new Context).first; }

  static void remove(Context* context) {
    all().erase(context);
    delete context;
  }

  static bool has(Context* handle) { return all().count(handle) != 0; }

 private:
  static std::set<Context*>& all() {
    static auto* const contexts = new std::set<Context*>;  // programs may call at their exit
    return *contexts;
  }
};

}  // namespace warpstack::library
