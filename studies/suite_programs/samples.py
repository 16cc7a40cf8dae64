"""The samples of the CUDA toolkit."""

from __future__ import annotations

from .program import Program

_NAMES = {
    "0_Introduction": (
        "UnifiedMemoryStreams asyncAPI clock cudaOpenMP fp16ScalarProduct matrixMul matrixMulDrv "
        "mergeSort simpleAWBarrier simpleAssert simpleAtomicIntrinsics simpleAttributes "
        "simpleCallback simpleCooperativeGroups simpleCubemapTexture simpleDrvRuntime "
        "simpleHyperQ simpleLayeredTexture simpleMultiCopy simpleOccupancy "
        "simplePitchLinearTexture simplePrintf simpleStreams simpleSurfaceWrite simpleTemplates "
        "simpleTexture simpleTextureDrv simpleVoteIntrinsics simpleZeroCopy systemWideAtomics "
        "template vectorAdd vectorAddDrv vectorAddMMAP"
    ),
    "1_Utilities": "deviceQuery deviceQueryDrv",
    "2_Concepts_and_Techniques": (
        "MC_EstimatePiInlineP MC_EstimatePiInlineQ MC_EstimatePiP MC_EstimatePiQ "
        "MC_SingleAsianOptionP convolutionSeparable convolutionTexture dct8x8 eigenvalues "
        "histogram inlinePTX radixSortThrust reduction reductionMultiBlockCG scalarProd scan "
        "segmentationTreeThrust shfl_scan sortingNetworks streamOrderedAllocation "
        "threadFenceReduction threadMigration"
    ),
    "3_CUDA_Features": (
        "StreamPriorities bf16TensorCoreGemm binaryPartitionCG cdpAdvancedQuicksort "
        "cdpBezierTessellation cdpQuadtree cdpSimplePrint cdpSimpleQuicksort "
        "cudaCompressibleMemory cudaTensorCoreGemm dmmaTensorCoreGemm globalToShmemAsyncCopy "
        "graphConditionalNodes graphMemoryFootprint graphMemoryNodes immaTensorCoreGemm "
        "jacobiCudaGraphs newdelete ptxjit simpleCudaGraphs tf32TensorCoreGemm "
        "warpAggregatedAtomicsCG"
    ),
    "4_CUDA_Libraries": (
        "MersenneTwisterGP11213 batchCUBLAS conjugateGradient conjugateGradientCudaGraphs "
        "conjugateGradientMultiBlockCG conjugateGradientPrecond conjugateGradientUM "
        "cuSolverDn_LinearSolver cuSolverRf cuSolverSp_LinearSolver cuSolverSp_LowlevelCholesky "
        "cuSolverSp_LowlevelQR lineOfSight matrixMulCUBLAS simpleCUBLAS simpleCUBLASXT "
        "simpleCUBLAS_LU simpleCUFFT simpleCUFFT_callback"
    ),
    "5_Domain_Specific": (
        "BlackScholes FDTD3d HSOpticalFlow SobolQRNG binomialOptions convolutionFFT2D dwtHaar1D "
        "dxtc fastWalshTransform quasirandomGenerator stereoDisparity"
    ),
    "6_Performance": (
        "LargeKernelParameter UnifiedMemoryPerf alignedTypes cudaGraphsPerfScaling transpose"
    ),
}
#: Samples that need more than CUDA: windows, several GPUs, drivers and libraries of other things.
_NOT_TRIED = {
    "NVRTC at run time": (
        "0_Introduction/clock_nvrtc 0_Introduction/matrixMulDynlinkJIT "
        "0_Introduction/matrixMul_nvrtc 0_Introduction/simpleAssert_nvrtc "
        "0_Introduction/simpleAtomicIntrinsics_nvrtc 0_Introduction/vectorAdd_nvrtc "
        "2_Concepts_and_Techniques/inlinePTX_nvrtc 4_CUDA_Libraries/jitLto "
        "5_Domain_Specific/BlackScholes_nvrtc 5_Domain_Specific/binomialOptions_nvrtc "
        "5_Domain_Specific/quasirandomGenerator_nvrtc"
    ),
    "graphics": (
        "0_Introduction/simpleCUDA2GL 0_Introduction/simpleTexture3D "
        "2_Concepts_and_Techniques/EGLStream_CUDA_CrossGPU "
        "2_Concepts_and_Techniques/EGLStream_CUDA_Interop "
        "2_Concepts_and_Techniques/FunctionPointers 2_Concepts_and_Techniques/boxFilter "
        "2_Concepts_and_Techniques/imageDenoising 2_Concepts_and_Techniques/particles "
        "3_CUDA_Features/bindlessTexture "
        "4_CUDA_Libraries/FilterBorderControlNPP 4_CUDA_Libraries/boxFilterNPP "
        "4_CUDA_Libraries/cannyEdgeDetectorNPP 4_CUDA_Libraries/cudaNvSci "
        "4_CUDA_Libraries/freeImageInteropNPP 4_CUDA_Libraries/histEqualizationNPP "
        "4_CUDA_Libraries/nvJPEG 4_CUDA_Libraries/nvJPEG_encoder 4_CUDA_Libraries/oceanFFT "
        "4_CUDA_Libraries/randomFog 4_CUDA_Libraries/watershedSegmentationNPP "
        "5_Domain_Specific/Mandelbrot 5_Domain_Specific/NV12toBGRandResize "
        "5_Domain_Specific/SobelFilter 5_Domain_Specific/bicubicTexture "
        "5_Domain_Specific/bilateralFilter 5_Domain_Specific/fluidsGL "
        "5_Domain_Specific/marchingCubes 5_Domain_Specific/nbody 5_Domain_Specific/postProcessGL "
        "5_Domain_Specific/recursiveGaussian 5_Domain_Specific/simpleD3D11 "
        "5_Domain_Specific/simpleD3D11Texture 5_Domain_Specific/simpleD3D12 "
        "5_Domain_Specific/simpleGL 5_Domain_Specific/simpleVulkan "
        "5_Domain_Specific/simpleVulkanMMAP 5_Domain_Specific/smokeParticles "
        "5_Domain_Specific/volumeFiltering 5_Domain_Specific/volumeRender "
        "5_Domain_Specific/vulkanImageCUDA"
    ),
    "several GPUs or processes": (
        "0_Introduction/simpleIPC 0_Introduction/simpleMPI 0_Introduction/simpleMultiGPU "
        "0_Introduction/simpleP2P 1_Utilities/topologyQuery "
        "2_Concepts_and_Techniques/streamOrderedAllocationIPC "
        "2_Concepts_and_Techniques/streamOrderedAllocationP2P 3_CUDA_Features/memMapIPCDrv "
        "4_CUDA_Libraries/conjugateGradientMultiDeviceCG 4_CUDA_Libraries/simpleCUFFT_2d_MGPU "
        "4_CUDA_Libraries/simpleCUFFT_MGPU 5_Domain_Specific/MonteCarloMultiGPU "
        "5_Domain_Specific/p2pBandwidthLatencyTest"
    ),
    "Boost": "2_Concepts_and_Techniques/interval",
}
_PASSED = r"PASS|[Ss]uccess|[Cc]orrect|Results match|matched|[Tt]est passed|OK\b|completed|\b0 Fail"
#: Smaller inputs than the samples' own, where they take arguments.
_ARGUMENTS = {
    "FDTD3d": "--dimx=96 --dimy=96 --dimz=96 --timesteps=1",
    "MersenneTwisterGP11213": "--count=24000",
    "SobolQRNG": "--vectors=4096 --dimensions=16",
    "UnifiedMemoryPerf": "-kernel-iterations=1",
    "cdpAdvancedQuicksort": "--size=10000",
    "eigenvalues": "--matrix-size=512 --iters-timing=1",
    "globalToShmemAsyncCopy": "-wA=128 -hA=128 -wB=128 -hB=128",
    "matrixMul": "-wA=64 -hA=64 -wB=64 -hB=64",
    "matrixMulCUBLAS": "sizemult=1",
    "radixSortThrust": "-n=16384 -iterations=1",
    "reduction": "--n=65536",
    "reductionMultiBlockCG": "--n=65536",
    "threadFenceReduction": "--n=65536",
    "transpose": "-dimX=128 -dimY=128",
}
_TILES = "M_TILES, N_TILES and K_TILES 16"
#: Their kernels are empty before compute capability 8.0, or the sample refuses to run.
_AMPERE = "architecture compute_80"
_NESTED = "architecture sm_75 and relocatable device code"
#: How they are compiled: constants of their sources that are made smaller, architectures.
_BUILD = {
    "BlackScholes": "OPT_N = 40000, NUM_ITERATIONS = 1",
    "HSOpticalFlow": "nSolverIters = 5",
    "alignedTypes": "MEM_SIZE = 500000",
    "bf16TensorCoreGemm": f"{_TILES}, {_AMPERE}",
    "binomialOptions": "MAX_OPTIONS 64",
    "cdpAdvancedQuicksort": _NESTED,
    "cdpBezierTessellation": _NESTED,
    "cdpQuadtree": _NESTED,
    "cdpSimplePrint": _NESTED,
    "cdpSimpleQuicksort": _NESTED,
    "conjugateGradient": "N = 4096",
    "conjugateGradientCudaGraphs": "N = 4096",
    "conjugateGradientMultiBlockCG": "N = 4096",
    "conjugateGradientUM": "N = 4096",
    "convolutionSeparable": "imageW and imageH = 384",
    "convolutionTexture": "imageW and imageH = 384",
    "cudaCompressibleMemory": "n = 1048576",
    "cudaTensorCoreGemm": _TILES,
    "dmmaTensorCoreGemm": f"{_TILES}, {_AMPERE}",
    "fastWalshTransform": "log2Data = 16",
    "globalToShmemAsyncCopy": f"nIter = 1, {_AMPERE}",
    "graphMemoryNodes": "NUM_ELEMENTS 100000",
    "histogram": "byteCount = 1048576",
    "immaTensorCoreGemm": _TILES,
    "jacobiCudaGraphs": "N_ROWS 128",
    "lineOfSight": "numIterations = 1",
    "matrixMul": "nIter = 3",
    "mergeSort": "N = 262144",
    "quasirandomGenerator": "N = 32768",
    "reduction": "testIterations = 1",
    "reductionMultiBlockCG": "testIterations = 1",
    "scan": "iCycles = 1",
    "simpleCUBLAS_LU": "BATCH_SIZE 100",
    "simpleCudaGraphs": "`1 << 18` instead of `1 << 24`",
    "simpleMultiCopy": "N = 1 << 16",
    "simplePitchLinearTexture": "nx and ny = 256, NUM_REPS 5",
    "simpleStreams": "n = 262144",
    "sortingNetworks": "N = 65536",
    "tf32TensorCoreGemm": f"{_TILES}, {_AMPERE}",
    "transpose": "NUM_REPS 1",
    "warpAggregatedAtomicsCG": "NUM_ELEMS 100000",
}
_MATRICES = "the matrices (.mtx) of its folder"
#: Files and folders that programs read.
_BESIDE = {
    "HSOpticalFlow": "data",
    "cuSolverDn_LinearSolver": _MATRICES,
    "cuSolverRf": _MATRICES,
    "cuSolverSp_LinearSolver": _MATRICES,
    "cuSolverSp_LowlevelCholesky": _MATRICES,
    "cuSolverSp_LowlevelQR": _MATRICES,
    "dct8x8": "data",
    "dwtHaar1D": "data",
    "dxtc": "data",
    "eigenvalues": "data",
    "matrixMulDrv": "matrixMul_kernel64.fatbin",
    "ptxjit": "ptxjit_kernel64.fatbin and ptxjit_kernel64.ptx",
    "segmentationTreeThrust": "data",
    "simpleDrvRuntime": "vectorAdd_kernel64.fatbin",
    "simpleSurfaceWrite": "data",
    "simpleTexture": "data",
    "simpleTextureDrv": "data and simpleTexture_kernel64.fatbin",
    "stereoDisparity": "data",
    "threadMigration": "threadMigration_kernel64.fatbin",
    "vectorAddDrv": "vectorAdd_kernel64.fatbin",
    "vectorAddMMAP": "vectorAdd_kernel64.fatbin",
}


def _sample(path: str, needs: str = "") -> Program:
    folder, name = path.split("/")
    return Program(
        f"{folder[0]}/{name}",
        f"Samples/{path}",
        tuple(_ARGUMENTS.get(name, "").split()),
        _PASSED,
        needs,
        _BUILD.get(name, ""),
        _BESIDE.get(name, ""),
    )


#: Programs of https://github.com/NVIDIA/cuda-samples.
CUDA_SAMPLES = (
    *(_sample(f"{folder}/{name}") for folder, names in _NAMES.items() for name in names.split()),
    *(_sample(path, needs) for needs, paths in _NOT_TRIED.items() for path in paths.split()),
)
