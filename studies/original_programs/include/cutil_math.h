// The vector operators that the SDK had under this name; NVIDIA's samples have them now.
#pragma once
#include <helper_math.h>
