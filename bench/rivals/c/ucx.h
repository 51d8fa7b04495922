/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What programs over UCX have in common: one worker a side, polled without pause. UCX's own variables win; without them these programs
 * take POSIX shared memory, the fastest here.
 */
#include <ucp/api/ucp.h>

struct side {
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h peer;
};

static void check(ucs_status_t status, const char *what)
{
	if (status != UCS_OK)
		die("%s: %s", what, ucs_status_string(status));
}

/* Waits for what was started and not finished at once. */
static void finish(struct side *side, ucs_status_ptr_t request, const char *what)
{
	if (request == NULL)
		return;
	if (UCS_PTR_IS_ERR(request))
		die("%s: %s", what, ucs_status_string(UCS_PTR_STATUS(request)));
	while (ucp_request_check_status(request) == UCS_INPROGRESS)
		ucp_worker_progress(side->worker);
	check(ucp_request_check_status(request), what);
	ucp_request_free(request);
}

static void connect_to(struct side *side, const void *address)
{
	ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, .address = address };

	check(ucp_ep_create(side->worker, &params, &side->peer), "cannot connect");
}

static void open_worker(struct side *side, uint64_t features)
{
	ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS,
				.features = features,
				.estimated_num_eps = 1 };
	ucp_worker_params_t worker = { .field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
				       .thread_mode = UCS_THREAD_MODE_SINGLE };
	ucp_config_t *config;

	setenv("UCX_TLS", "posix,self", 0);
	check(ucp_config_read(NULL, NULL, &config), "cannot read the configuration");
	check(ucp_init(&params, config, &side->context), "cannot start UCX");
	ucp_config_release(config);
	check(ucp_worker_create(side->context, &worker, &side->worker), "cannot make a worker");
}

static void close_worker(struct side *side)
{
	ucp_worker_destroy(side->worker);
	ucp_cleanup(side->context);
}
