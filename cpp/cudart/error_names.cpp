#include "cudart/error_names.h"

namespace warpstack::cudart {
namespace {

constexpr char unknown[] = "unrecognized error code";

}  // namespace

const char* name_of(Error error) {
  switch (static_cast<int>(error)) {
    case 0:
      return "cudaSuccess";
    case 1:
      return "cudaErrorInvalidValue";
    case 2:
      return "cudaErrorMemoryAllocation";
    case 3:
      return "cudaErrorInitializationError";
    case 4:
      return "cudaErrorCudartUnloading";
    case 5:
      return "cudaErrorProfilerDisabled";
    case 6:
      return "cudaErrorProfilerNotInitialized";
    case 7:
      return "cudaErrorProfilerAlreadyStarted";
    case 8:
      return "cudaErrorProfilerAlreadyStopped";
    case 9:
      return "cudaErrorInvalidConfiguration";
    case 12:
      return "cudaErrorInvalidPitchValue";
    case 13:
      return "cudaErrorInvalidSymbol";
    case 16:
      return "cudaErrorInvalidHostPointer";
    case 17:
      return "cudaErrorInvalidDevicePointer";
    case 18:
      return "cudaErrorInvalidTexture";
    case 19:
      return "cudaErrorInvalidTextureBinding";
    case 20:
      return "cudaErrorInvalidChannelDescriptor";
    case 21:
      return "cudaErrorInvalidMemcpyDirection";
    case 22:
      return "cudaErrorAddressOfConstant";
    case 23:
      return "cudaErrorTextureFetchFailed";
    case 24:
      return "cudaErrorTextureNotBound";
    case 25:
      return "cudaErrorSynchronizationError";
    case 26:
      return "cudaErrorInvalidFilterSetting";
    case 27:
      return "cudaErrorInvalidNormSetting";
    case 28:
      return "cudaErrorMixedDeviceExecution";
    case 31:
      return "cudaErrorNotYetImplemented";
    case 32:
      return "cudaErrorMemoryValueTooLarge";
    case 34:
      return "cudaErrorStubLibrary";
    case 35:
      return "cudaErrorInsufficientDriver";
    case 36:
      return "cudaErrorCallRequiresNewerDriver";
    case 37:
      return "cudaErrorInvalidSurface";
    case 43:
      return "cudaErrorDuplicateVariableName";
    case 44:
      return "cudaErrorDuplicateTextureName";
    case 45:
      return "cudaErrorDuplicateSurfaceName";
    case 46:
      return "cudaErrorDevicesUnavailable";
    case 49:
      return "cudaErrorIncompatibleDriverContext";
    case 52:
      return "cudaErrorMissingConfiguration";
    case 53:
      return "cudaErrorPriorLaunchFailure";
    case 65:
      return "cudaErrorLaunchMaxDepthExceeded";
    case 66:
      return "cudaErrorLaunchFileScopedTex";
    case 67:
      return "cudaErrorLaunchFileScopedSurf";
    case 68:
      return "cudaErrorSyncDepthExceeded";
    case 69:
      return "cudaErrorLaunchPendingCountExceeded";
    case 98:
      return "cudaErrorInvalidDeviceFunction";
    case 100:
      return "cudaErrorNoDevice";
    case 101:
      return "cudaErrorInvalidDevice";
    case 102:
      return "cudaErrorDeviceNotLicensed";
    case 103:
      return "cudaErrorSoftwareValidityNotEstablished";
    case 127:
      return "cudaErrorStartupFailure";
    case 200:
      return "cudaErrorInvalidKernelImage";
    case 201:
      return "cudaErrorDeviceUninitialized";
    case 205:
      return "cudaErrorMapBufferObjectFailed";
    case 206:
      return "cudaErrorUnmapBufferObjectFailed";
    case 207:
      return "cudaErrorArrayIsMapped";
    case 208:
      return "cudaErrorAlreadyMapped";
    case 209:
      return "cudaErrorNoKernelImageForDevice";
    case 210:
      return "cudaErrorAlreadyAcquired";
    case 211:
      return "cudaErrorNotMapped";
    case 212:
      return "cudaErrorNotMappedAsArray";
    case 213:
      return "cudaErrorNotMappedAsPointer";
    case 214:
      return "cudaErrorECCUncorrectable";
    case 215:
      return "cudaErrorUnsupportedLimit";
    case 216:
      return "cudaErrorDeviceAlreadyInUse";
    case 217:
      return "cudaErrorPeerAccessUnsupported";
    case 218:
      return "cudaErrorInvalidPtx";
    case 219:
      return "cudaErrorInvalidGraphicsContext";
    case 220:
      return "cudaErrorNvlinkUncorrectable";
    case 221:
      return "cudaErrorJitCompilerNotFound";
    case 222:
      return "cudaErrorUnsupportedPtxVersion";
    case 223:
      return "cudaErrorJitCompilationDisabled";
    case 224:
      return "cudaErrorUnsupportedExecAffinity";
    case 225:
      return "cudaErrorUnsupportedDevSideSync";
    case 226:
      return "cudaErrorContained";
    case 300:
      return "cudaErrorInvalidSource";
    case 301:
      return "cudaErrorFileNotFound";
    case 302:
      return "cudaErrorSharedObjectSymbolNotFound";
    case 303:
      return "cudaErrorSharedObjectInitFailed";
    case 304:
      return "cudaErrorOperatingSystem";
    case 400:
      return "cudaErrorInvalidResourceHandle";
    case 401:
      return "cudaErrorIllegalState";
    case 402:
      return "cudaErrorLossyQuery";
    case 500:
      return "cudaErrorSymbolNotFound";
    case 600:
      return "cudaErrorNotReady";
    case 700:
      return "cudaErrorIllegalAddress";
    case 701:
      return "cudaErrorLaunchOutOfResources";
    case 702:
      return "cudaErrorLaunchTimeout";
    case 703:
      return "cudaErrorLaunchIncompatibleTexturing";
    case 704:
      return "cudaErrorPeerAccessAlreadyEnabled";
    case 705:
      return "cudaErrorPeerAccessNotEnabled";
    case 708:
      return "cudaErrorSetOnActiveProcess";
    case 709:
      return "cudaErrorContextIsDestroyed";
    case 710:
      return "cudaErrorAssert";
    case 711:
      return "cudaErrorTooManyPeers";
    case 712:
      return "cudaErrorHostMemoryAlreadyRegistered";
    case 713:
      return "cudaErrorHostMemoryNotRegistered";
    case 714:
      return "cudaErrorHardwareStackError";
    case 715:
      return "cudaErrorIllegalInstruction";
    case 716:
      return "cudaErrorMisalignedAddress";
    case 717:
      return "cudaErrorInvalidAddressSpace";
    case 718:
      return "cudaErrorInvalidPc";
    case 719:
      return "cudaErrorLaunchFailure";
    case 720:
      return "cudaErrorCooperativeLaunchTooLarge";
    case 721:
      return "cudaErrorTensorMemoryLeak";
    case 800:
      return "cudaErrorNotPermitted";
    case 801:
      return "cudaErrorNotSupported";
    case 802:
      return "cudaErrorSystemNotReady";
    case 803:
      return "cudaErrorSystemDriverMismatch";
    case 804:
      return "cudaErrorCompatNotSupportedOnDevice";
    case 805:
      return "cudaErrorMpsConnectionFailed";
    case 806:
      return "cudaErrorMpsRpcFailure";
    case 807:
      return "cudaErrorMpsServerNotReady";
    case 808:
      return "cudaErrorMpsMaxClientsReached";
    case 809:
      return "cudaErrorMpsMaxConnectionsReached";
    case 810:
      return "cudaErrorMpsClientTerminated";
    case 811:
      return "cudaErrorCdpNotSupported";
    case 812:
      return "cudaErrorCdpVersionMismatch";
    case 900:
      return "cudaErrorStreamCaptureUnsupported";
    case 901:
      return "cudaErrorStreamCaptureInvalidated";
    case 902:
      return "cudaErrorStreamCaptureMerge";
    case 903:
      return "cudaErrorStreamCaptureUnmatched";
    case 904:
      return "cudaErrorStreamCaptureUnjoined";
    case 905:
      return "cudaErrorStreamCaptureIsolation";
    case 906:
      return "cudaErrorStreamCaptureImplicit";
    case 907:
      return "cudaErrorCapturedEvent";
    case 908:
      return "cudaErrorStreamCaptureWrongThread";
    case 909:
      return "cudaErrorTimeout";
    case 910:
      return "cudaErrorGraphExecUpdateFailure";
    case 911:
      return "cudaErrorExternalDevice";
    case 912:
      return "cudaErrorInvalidClusterSize";
    case 913:
      return "cudaErrorFunctionNotLoaded";
    case 914:
      return "cudaErrorInvalidResourceType";
    case 915:
      return "cudaErrorInvalidResourceConfiguration";
    case 999:
      return "cudaErrorUnknown";
    default:
      return unknown;
  }
}

const char* description_of(Error error) {
  switch (error) {
    case Error::success:
      return "no error";
    case Error::invalid_value:
      return "invalid argument";
    case Error::memory_allocation:
      return "out of memory";
    case Error::invalid_configuration:
      return "invalid configuration argument";
    case Error::invalid_symbol:
      return "invalid device symbol";
    case Error::invalid_texture:
      return "invalid texture reference";
    case Error::invalid_channel_descriptor:
      return "invalid channel descriptor";
    case Error::missing_configuration:
      return "a kernel was called without a configuration";
    case Error::invalid_device_function:
      return "invalid device function";
    case Error::invalid_device:
      return "invalid device ordinal";
    case Error::no_kernel_image_for_device:
      return "the program has no PTX that warpstack can run";
    case Error::invalid_ptx:
      return "the PTX cannot be read";
    case Error::invalid_resource_handle:
      return "invalid resource handle";
    case Error::symbol_not_found:
      return "named symbol not found";
    case Error::not_ready:
      return "not ready";
    case Error::illegal_address:
      return "an access out of bounds by a kernel";
    case Error::misaligned_address:
      return "a misaligned access by a kernel";
    case Error::assertion:
      return "a failed assertion in a kernel";
    case Error::launch_timeout:
      return "a kernel did not end";
    case Error::launch_failure:
      return "unspecified launch failure";
    case Error::not_supported:
      return "operation not supported";
    default:
      return name_of(error);
  }
}

}  // namespace warpstack::cudart
