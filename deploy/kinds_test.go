package deploy_test

// The shapes of what deploy/ uses, and no more: a field that is not here is refused, so
// that a misspelled one cannot pass.

func kinds() map[string]any {
	return map[string]any{
		"Kustomization": new(kustomization), "Namespace": new(namespace), "ConfigMap": new(configMap), "Job": new(job),
		"Deployment": new(deployment), "Service": new(service), "PodDisruptionBudget": new(disruptionBudget),
		"ScaledObject": new(scaledObject), "TriggerAuthentication": new(triggerAuthentication),
	}
}

type header struct {
	APIVersion string   `yaml:"apiVersion"`
	Kind       string   `yaml:"kind"`
	Metadata   metadata `yaml:"metadata"`
}

type metadata struct {
	Name        string            `yaml:"name"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

type named struct {
	Name string `yaml:"name"`
}

type selector struct {
	MatchLabels map[string]string `yaml:"matchLabels"`
}

type kustomization struct {
	header    `yaml:",inline"`
	Namespace string   `yaml:"namespace"`
	Resources []string `yaml:"resources"`
	Images    []struct {
		Name    string `yaml:"name"`
		NewName string `yaml:"newName"`
		NewTag  string `yaml:"newTag"`
	} `yaml:"images"`
}

type namespace struct {
	header `yaml:",inline"`
}

type configMap struct {
	header `yaml:",inline"`
	Data   map[string]string `yaml:"data"`
}

type job struct {
	header `yaml:",inline"`
	Spec   struct {
		BackoffLimit            int         `yaml:"backoffLimit"`
		TTLSecondsAfterFinished int         `yaml:"ttlSecondsAfterFinished"`
		Template                podTemplate `yaml:"template"`
	} `yaml:"spec"`
}

type deployment struct {
	header `yaml:",inline"`
	Spec   struct {
		Replicas *int     `yaml:"replicas"`
		Selector selector `yaml:"selector"`
		Strategy struct {
			RollingUpdate struct {
				MaxSurge       int `yaml:"maxSurge"`
				MaxUnavailable int `yaml:"maxUnavailable"`
			} `yaml:"rollingUpdate"`
		} `yaml:"strategy"`
		Template podTemplate `yaml:"template"`
	} `yaml:"spec"`
}

type podTemplate struct {
	Metadata metadata `yaml:"metadata"`
	Spec     struct {
		RestartPolicy                 string `yaml:"restartPolicy"`
		AutomountServiceAccountToken  *bool  `yaml:"automountServiceAccountToken"`
		TerminationGracePeriodSeconds int    `yaml:"terminationGracePeriodSeconds"`
		SecurityContext               struct {
			RunAsNonRoot   bool `yaml:"runAsNonRoot"`
			RunAsUser      int  `yaml:"runAsUser"`
			SeccompProfile struct {
				Type string `yaml:"type"`
			} `yaml:"seccompProfile"`
		} `yaml:"securityContext"`
		TopologySpreadConstraints []struct {
			MaxSkew           int      `yaml:"maxSkew"`
			TopologyKey       string   `yaml:"topologyKey"`
			WhenUnsatisfiable string   `yaml:"whenUnsatisfiable"`
			LabelSelector     selector `yaml:"labelSelector"`
		} `yaml:"topologySpreadConstraints"`
		Containers []container `yaml:"containers"`
	} `yaml:"spec"`
}

type container struct {
	Name  string   `yaml:"name"`
	Image string   `yaml:"image"`
	Args  []string `yaml:"args"`
	Ports []struct {
		Name          string `yaml:"name"`
		ContainerPort string `yaml:"containerPort"`
	} `yaml:"ports"`
	EnvFrom []struct {
		ConfigMapRef named `yaml:"configMapRef"`
	} `yaml:"envFrom"`
	Env []struct {
		Name      string `yaml:"name"`
		ValueFrom struct {
			SecretKeyRef struct {
				Name     string `yaml:"name"`
				Key      string `yaml:"key"`
				Optional bool   `yaml:"optional"`
			} `yaml:"secretKeyRef"`
		} `yaml:"valueFrom"`
	} `yaml:"env"`
	ReadinessProbe *probe `yaml:"readinessProbe"`
	LivenessProbe  *probe `yaml:"livenessProbe"`
	Lifecycle      *struct {
		PreStop struct {
			Sleep struct {
				Seconds int `yaml:"seconds"`
			} `yaml:"sleep"`
		} `yaml:"preStop"`
	} `yaml:"lifecycle"`
	Resources struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	} `yaml:"resources"`
	SecurityContext struct {
		AllowPrivilegeEscalation *bool `yaml:"allowPrivilegeEscalation"`
		ReadOnlyRootFilesystem   bool  `yaml:"readOnlyRootFilesystem"`
		Capabilities             struct {
			Drop []string `yaml:"drop"`
		} `yaml:"capabilities"`
	} `yaml:"securityContext"`
}

type probe struct {
	HTTPGet struct {
		Path string `yaml:"path"`
		Port string `yaml:"port"`
	} `yaml:"httpGet"`
	PeriodSeconds    int `yaml:"periodSeconds"`
	TimeoutSeconds   int `yaml:"timeoutSeconds"`
	FailureThreshold int `yaml:"failureThreshold"`
}

type service struct {
	header `yaml:",inline"`
	Spec   struct {
		ClusterIP string            `yaml:"clusterIP"`
		Selector  map[string]string `yaml:"selector"`
		Ports     []struct {
			Name       string `yaml:"name"`
			Port       int    `yaml:"port"`
			TargetPort string `yaml:"targetPort"`
		} `yaml:"ports"`
	} `yaml:"spec"`
}

type disruptionBudget struct {
	header `yaml:",inline"`
	Spec   struct {
		MaxUnavailable int      `yaml:"maxUnavailable"`
		Selector       selector `yaml:"selector"`
	} `yaml:"spec"`
}

type scaledObject struct {
	header `yaml:",inline"`
	Spec   struct {
		ScaleTargetRef  named `yaml:"scaleTargetRef"`
		PollingInterval int   `yaml:"pollingInterval"`
		CooldownPeriod  int   `yaml:"cooldownPeriod"`
		MinReplicaCount int   `yaml:"minReplicaCount"`
		MaxReplicaCount int   `yaml:"maxReplicaCount"`
		Advanced        struct {
			HorizontalPodAutoscalerConfig struct {
				Behavior struct {
					ScaleUp   stabilization `yaml:"scaleUp"`
					ScaleDown stabilization `yaml:"scaleDown"`
				} `yaml:"behavior"`
			} `yaml:"horizontalPodAutoscalerConfig"`
		} `yaml:"advanced"`
		Triggers []struct {
			Type              string            `yaml:"type"`
			Name              string            `yaml:"name"`
			Metadata          map[string]string `yaml:"metadata"`
			AuthenticationRef named             `yaml:"authenticationRef"`
		} `yaml:"triggers"`
	} `yaml:"spec"`
}

type stabilization struct {
	StabilizationWindowSeconds int `yaml:"stabilizationWindowSeconds"`
}

type triggerAuthentication struct {
	header `yaml:",inline"`
	Spec   struct {
		SecretTargetRef []struct {
			Parameter string `yaml:"parameter"`
			Name      string `yaml:"name"`
			Key       string `yaml:"key"`
		} `yaml:"secretTargetRef"`
	} `yaml:"spec"`
}

// composeFile is what docker-compose.yml uses of the compose format.
type composeFile struct {
	Template any                       `yaml:"x-foyer"`
	Services map[string]composeService `yaml:"services"`
	Volumes  map[string]any            `yaml:"volumes"`
}

type composeService struct {
	Image       string            `yaml:"image"`
	Build       string            `yaml:"build"`
	Command     []string          `yaml:"command"`
	Restart     string            `yaml:"restart"`
	Environment map[string]string `yaml:"environment"`
	Ports       []string          `yaml:"ports"`
	Volumes     []string          `yaml:"volumes"`
	HealthCheck *struct {
		Test     []string `yaml:"test"`
		Interval string   `yaml:"interval"`
		Timeout  string   `yaml:"timeout"`
		Retries  int      `yaml:"retries"`
	} `yaml:"healthcheck"`
	DependsOn map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Deploy struct {
		Replicas int `yaml:"replicas"`
	} `yaml:"deploy"`
	StopGracePeriod string `yaml:"stop_grace_period"`
}
