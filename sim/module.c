/*
 * Modules: PTX text whose entries are matched, by name, to built-in kernels. Compiled images are
 * refused; an entry that is not built in is not found.
 */

#include "module.h"

#include "stream.h"

#include <stdlib.h>
#include <string.h>

struct sim_module {
	struct sim_context *context;
	struct sim_function *functions;
};

#define ENTRY_WORD ".entry"
#define NAME_SPACE " \t\r\n"
#define NAME_END "( \t\r\n"

CUresult sim_function_get(CUfunction handle, struct sim_function **ret_function)
{
	if (!sim_set_has(&sim_core.functions, handle))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_function = (struct sim_function *)(void *)handle;
	return CUDA_SUCCESS;
}

static void module_free(struct sim_module *module)
{
	sim_set_remove(&sim_core.modules, module);
	while (module->functions != NULL) {
		struct sim_function *function = module->functions;

		module->functions = function->next;
		sim_set_remove(&sim_core.functions, function);
		free(function);
	}
	free(module);
}

void sim_module_drop_context(const struct sim_context *context)
{
	size_t i = 0;

	while (i < sim_core.modules.count) {
		struct sim_module *module = sim_core.modules.items[i];

		if (module->context == context)
			module_free(module);
		else
			i++;
	}
}

static CUresult add_function(struct sim_module *module, const struct sim_kernel *kernel)
{
	struct sim_function *function = calloc(1, sizeof(*function));

	if (function == NULL || !sim_set_add(&sim_core.functions, function)) {
		free(function);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	function->module = module;
	function->kernel = kernel;
	function->next = module->functions;
	module->functions = function;
	return CUDA_SUCCESS;
}

static CUresult add_functions(struct sim_module *module, const char *text)
{
	CUresult result = CUDA_SUCCESS;

	while (result == CUDA_SUCCESS && (text = strstr(text, ENTRY_WORD)) != NULL) {
		const struct sim_kernel *kernel;

		text += strlen(ENTRY_WORD);
		text += strspn(text, NAME_SPACE);
		kernel = sim_kernel_find(text, strcspn(text, NAME_END));
		if (kernel != NULL)
			result = add_function(module, kernel);
	}
	return result;
}

static CUresult load(CUmodule *ret_module, const char *image)
{
	struct sim_module *module;
	CUresult result;

	if (ret_module == NULL || image == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	if (memcmp(image, "\177ELF", 4) == 0)
		return CUDA_ERROR_NO_BINARY_FOR_GPU;
	if (strstr(image, ".version") == NULL || strstr(image, ".target") == NULL)
		return CUDA_ERROR_INVALID_IMAGE;
	module = calloc(1, sizeof(*module));
	if (module == NULL || !sim_set_add(&sim_core.modules, module)) {
		free(module);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	module->context = sim_context_current();
	result = add_functions(module, image);
	if (result != CUDA_SUCCESS) {
		module_free(module);
		return result;
	}
	*ret_module = (CUmodule)(void *)module;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuModuleLoadData(CUmodule *ret_module, const void *image)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, load(ret_module, image));
}

/* Options of the compiler have nothing to act on. */
SIM_API CUresult cuModuleLoadDataEx(CUmodule *ret_module, const void *image,
				    unsigned int option_count, CUjit_option *options, void **values)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       option_count > 0 && (options == NULL || values == NULL)
				       ? CUDA_ERROR_INVALID_VALUE
				       : load(ret_module, image));
}

static CUresult module_get(CUmodule handle, struct sim_module **ret_module)
{
	if (!sim_set_has(&sim_core.modules, handle))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_module = (struct sim_module *)(void *)handle;
	return CUDA_SUCCESS;
}

/* Launched kernels need nothing of the module any more. */
static CUresult unload(CUmodule handle)
{
	struct sim_module *module = NULL;
	CUresult result = module_get(handle, &module);

	if (result == CUDA_SUCCESS)
		module_free(module);
	return result;
}

SIM_API CUresult cuModuleUnload(CUmodule module)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, unload(module));
}

static CUresult get_function(CUfunction *ret_function, CUmodule handle, const char *name)
{
	struct sim_module *module = NULL;
	CUresult result;

	if (ret_function == NULL || name == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = module_get(handle, &module);
	if (result != CUDA_SUCCESS)
		return result;
	for (struct sim_function *function = module->functions; function != NULL;
	     function = function->next) {
		if (strcmp(function->kernel->name, name) != 0)
			continue;
		*ret_function = (CUfunction)(void *)function;
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_NOT_FOUND;
}

SIM_API CUresult cuModuleGetFunction(CUfunction *ret_function, CUmodule module, const char *name)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       get_function(ret_function, module, name));
}

/* No built-in kernel has globals. */
static CUresult get_global(CUmodule handle, const char *name)
{
	struct sim_module *module = NULL;
	CUresult result = name != NULL ? module_get(handle, &module) : CUDA_ERROR_INVALID_VALUE;

	return result == CUDA_SUCCESS ? CUDA_ERROR_NOT_FOUND : result;
}

SIM_API CUresult cuModuleGetGlobal_v2(CUdeviceptr *ret_address, size_t *ret_bytes, CUmodule module,
				      const char *name)
{
	(void)ret_address;
	(void)ret_bytes;
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, get_global(module, name));
}
