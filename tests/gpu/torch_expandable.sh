#!/bin/bash
# Description: torch_suspend.sh where PyTorch's allocator maps memory itself, in segments that grow.
export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
exec "$(dirname "$0")/torch_suspend.sh"
