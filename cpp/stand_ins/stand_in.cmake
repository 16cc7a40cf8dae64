# Where a stand-in's library finds the others, and where it is installed.
function(warpstack_stand_in_library target)
  set_target_properties(${target} PROPERTIES BUILD_RPATH "\$ORIGIN" INSTALL_RPATH "\$ORIGIN")
  install(TARGETS ${target} LIBRARY DESTINATION warpstack/lib)
endfunction()

# warpstack_stand_in(LIBRARY NAME SUFFIX [ABI VERSION] [ALSO]): a small library with the name that programs
# ask for, which leads to LIBRARY. With a version it has the symbol version of NVIDIA's library, and
# tells it to warpstack_<folder>_set_abi where LIBRARY has that; without one it is made of the
# folder's abi_shim.cpp. With ALSO what its sources export has no version.
function(warpstack_stand_in library name suffix)
  cmake_parse_arguments(PARSE_ARGV 3 STAND_IN "ALSO" "ABI" "")
  set(target warpstack_${name}${suffix})
  if(STAND_IN_ABI)
    add_library(${target} SHARED ${PROJECT_SOURCE_DIR}/cpp/stand_ins/library/abi_shim.cpp)
  else()
    add_library(${target} SHARED abi_shim.cpp)
  endif()
  # Nothing of the library is called here, and still it must be loaded.
  target_link_options(${target} PRIVATE -Wl,--no-as-needed)
  target_link_libraries(${target} PRIVATE ${library})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name} SUFFIX ${suffix})
  warpstack_stand_in_library(${target})
  if(STAND_IN_ABI)
    get_filename_component(folder ${CMAKE_CURRENT_SOURCE_DIR} NAME)
    target_compile_definitions(
      ${target} PRIVATE WARPSTACK_ABI_VERSION=${STAND_IN_ABI} WARPSTACK_ABI_SYMBOL=warpstack_${folder}_abi
                        WARPSTACK_SET_ABI=warpstack_${folder}_set_abi)
    set(map ${CMAKE_CURRENT_BINARY_DIR}/${target}.map)
    if(STAND_IN_ALSO)
      set(others "")
      set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden)
    else()
      set(others " local: *;")
    endif()
    file(WRITE ${map} "lib${name}${suffix} { global: warpstack_${folder}_abi;${others} };\n")
    target_link_options(${target} PRIVATE -Wl,--version-script=${map})
  endif()
endfunction()

# warpstack_library_stand_in(TARGET FILE...): the functions of a library above libcudart, which calls the stand-in for
# libcudart as a program does.
function(warpstack_library_stand_in target)
  add_library(${target} SHARED ${ARGN})
  warpstack_include_path(${target} PUBLIC)
  target_link_libraries(${target} PRIVATE warpstack_stand_ins_library warpstack_cudart)
  target_compile_options(${target} PRIVATE -Wall -Wextra)
  warpstack_stand_in_library(${target})
endfunction()
