#pragma once

#include <string>

#include "stand_ins/library/calls.h"
#include "stand_ins/library/handles.h"

/// Checks of arguments and answers that libraries have alike. Each is an object that a library has
/// once, as it has `call`; Library says, besides what calls.h says, its status `invalid_value`,
/// with which all of them throw Failure.
namespace warpstack::library {

/// "name = value".
inline std::string with_number(const char* name, long long value) {
  return std::string(name) + " = " + std::to_string(value);
}

/// Throws Failure unless a value of an enumeration lies in it.
template <typename Library>
struct CheckChoice {
  void operator()(const char* name, int value, int first, int last) const {
    require(value >= first && value <= last, Library::invalid_value,
            with_number(name, value) + " is not between " + std::to_string(first) + " and " +
                std::to_string(last));
  }
};

/// Puts a value where the program wants it.
template <typename Library>
struct Give {
  template <typename T, typename V>
  void operator()(T* place, V value, const char* name) const {
    require(place != nullptr, Library::invalid_value,
            std::string(name) + " is null: nowhere to put the answer");
    *place = static_cast<T>(value);
  }
};

/// Makes an object, whose pointer the program wants; nothing is made if there is nowhere to put it.
template <typename Library>
struct Create {
  template <typename T>
  void operator()(T** place, const char* name) const {
    require(place != nullptr, Library::invalid_value,
            std::string(name) + " is null: nowhere to put the answer");
    *place = Handles<T>::add();
  }
};

}  // namespace warpstack::library
